// The end of the process, and its beginning.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <memory>
#include <new>

#include "shim/files.hpp"
#include "shim/real.hpp"

namespace {

using vellum::shim::Files;

// Before the program can change its environment, or use what another program has left open.
[[gnu::constructor]] void begin() {
  if (Files::instance().active()) Files::instance().adopt_descriptors();
}

void commit_all() noexcept {
  if (Files::instance().active() && !Files::instance().shares_memory())
    Files::instance().commit_all();
}

void close_all() noexcept {
  if (Files::instance().active() && !Files::instance().shares_memory())
    Files::instance().close_all();
}

// What execl(3) and its like are given. Without memory of its own, as a child of vfork(2) may call.
constexpr std::size_t kMostWords = 8192;

struct Words {
  char* words[kMostWords];
  bool take(const char* first, va_list& arguments) {
    words[0] = const_cast<char*>(first);
    for (std::size_t i = 0; i + 1 < kMostWords; ++i) {
      if (words[i] == nullptr) return true;
      words[i + 1] = va_arg(arguments, char*);
    }
    errno = E2BIG;
    return false;
  }
};

// Threads of Vellum's own make calls that are meant for the kernel from their beginning.
struct Thread {
  void* (*run)(void*);
  void* argument;
};

void* run_inside(void* given) {
  const Thread thread = *std::unique_ptr<Thread>(static_cast<Thread*>(given));
  const vellum::shim::Inside inside;
  return thread.run(thread.argument);
}

}  // namespace

VELLUM_SHIM int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*run)(void*),
                               void* argument) noexcept {
  if (!vellum::shim::Inside::is())
    return VELLUM_REAL(pthread_create)(id, attributes, run, argument);
  auto* const thread = new (std::nothrow) Thread{run, argument};
  if (thread == nullptr) return EAGAIN;
  const int error = VELLUM_REAL(pthread_create)(id, attributes, run_inside, thread);
  if (error != 0) delete thread;
  return error;
}

// The next program has the descriptors, and nothing of what this one keeps in memory.
VELLUM_SHIM int execve(const char* path, char* const words[], char* const environment[]) noexcept {
  commit_all();
  return VELLUM_REAL(execve)(path, words, environment);
}
VELLUM_SHIM int execv(const char* path, char* const words[]) noexcept {
  commit_all();
  return VELLUM_REAL(execv)(path, words);
}
VELLUM_SHIM int execvp(const char* file, char* const words[]) noexcept {
  commit_all();
  return VELLUM_REAL(execvp)(file, words);
}
VELLUM_SHIM int execvpe(const char* file, char* const words[], char* const environment[]) noexcept {
  commit_all();
  return VELLUM_REAL(execvpe)(file, words, environment);
}
VELLUM_SHIM int fexecve(int fd, char* const words[], char* const environment[]) noexcept {
  commit_all();
  return VELLUM_REAL(fexecve)(fd, words, environment);
}
VELLUM_SHIM int execveat(int directory, const char* path, char* const words[],
                         char* const environment[], int flags) noexcept {
  commit_all();
  return VELLUM_REAL(execveat)(directory, path, words, environment, flags);
}

#define VELLUM_EXEC_LIST(name, call)                                        \
  VELLUM_SHIM int name(const char* path, const char* first, ...) noexcept { \
    Words list;                                                             \
    va_list arguments;                                                      \
    va_start(arguments, first);                                             \
    const bool taken = list.take(first, arguments);                         \
    va_end(arguments);                                                      \
    return taken ? call(path, list.words) : -1;                             \
  }
VELLUM_EXEC_LIST(execl, execv)
VELLUM_EXEC_LIST(execlp, execvp)

VELLUM_SHIM int execle(const char* path, const char* first, ...) noexcept {
  Words list;
  va_list arguments;
  va_start(arguments, first);
  const bool taken = list.take(first, arguments);
  char* const* const environment = taken ? va_arg(arguments, char* const*) : nullptr;
  va_end(arguments);
  return taken ? execve(path, list.words, environment) : -1;
}

// What has been written is in the file, however a process ends by itself.
VELLUM_SHIM void _exit(int status) {
  close_all();
  VELLUM_REAL(_exit)(status);
  __builtin_unreachable();
}
VELLUM_SHIM void _Exit(int status) noexcept {
  close_all();
  VELLUM_REAL(_Exit)(status);
  __builtin_unreachable();
}
VELLUM_SHIM void quick_exit(int status) noexcept {
  close_all();
  VELLUM_REAL(quick_exit)(status);
  __builtin_unreachable();
}
