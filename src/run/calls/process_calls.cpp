// Start and end of the process. Programs that it starts: exec_calls.cpp.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <new>

#include "run/files/files.hpp"
#include "run/process/real.hpp"
#include "run/run/exec_environment.hpp"
#include "run/run/run_record.hpp"

namespace {

using vellum::preload::Files;

// Looks up early the functions that allocators call: the lookup takes the dynamic linker's lock,
// whose holder may be waiting for the allocator's.
void find_early() noexcept {
  (void)VELLUM_REAL(mmap), (void)VELLUM_REAL(mmap64), (void)VELLUM_REAL(munmap);
  (void)VELLUM_REAL(mremap), (void)VELLUM_REAL(mprotect), (void)VELLUM_REAL(madvise);
  (void)VELLUM_REAL(posix_madvise), (void)VELLUM_REAL(pthread_create), (void)VELLUM_REAL(fcntl);
  (void)VELLUM_REAL(openat), (void)VELLUM_REAL(fstat), (void)VELLUM_REAL(lstat);
  (void)VELLUM_REAL(read), (void)VELLUM_REAL(write), (void)VELLUM_REAL(close);
}

// Runs before the program can change its environment, or use descriptors that it has inherited.
[[gnu::constructor]] void begin() {
  vellum::preload::keep_environment();
  vellum::preload::attach_record();
  find_early();
  if (Files::instance().active()) Files::instance().adopt_descriptors();
}

void close_all() noexcept {
  if (Files::instance().active() && !Files::instance().shares_memory())
    Files::instance().close_all();
}

// All calls that Vellum's own threads make are meant for the kernel.
struct Thread {
  void* (*run)(void*);
  void* argument;
};

void* run_inside(void* given) {
  const Thread thread = *std::unique_ptr<Thread>(static_cast<Thread*>(given));
  const vellum::preload::ReentrancyGuard inside;
  return thread.run(thread.argument);
}

}  // namespace

VELLUM_PRELOAD int pthread_create(pthread_t* id, const pthread_attr_t* attributes,
                                  void* (*run)(void*), void* argument) noexcept {
  if (!vellum::preload::ReentrancyGuard::is())
    return VELLUM_REAL(pthread_create)(id, attributes, run, argument);
  auto* const thread = new (std::nothrow) Thread{run, argument};
  if (thread == nullptr) return EAGAIN;
  const int error = VELLUM_REAL(pthread_create)(id, attributes, run_inside, thread);
  if (error != 0) delete thread;
  return error;
}

// Before pthread_atfork(3)'s handlers, which hold locks that closing a file takes.
VELLUM_PRELOAD pid_t fork() noexcept {
  if (!vellum::preload::ReentrancyGuard::is()) Files::instance().settle();
  return VELLUM_REAL(fork)();
}
// NOLINTNEXTLINE(bugprone-reserved-identifier): another name of it in the C library.
VELLUM_PRELOAD pid_t __fork() noexcept { return fork(); }

// In whatever way a process ends by itself, its writes are in the file.
VELLUM_PRELOAD void _exit(int status) {
  close_all();
  VELLUM_REAL(_exit)(status);
  __builtin_unreachable();
}
VELLUM_PRELOAD void _Exit(int status) noexcept {
  close_all();
  VELLUM_REAL(_Exit)(status);
  __builtin_unreachable();
}
VELLUM_PRELOAD void quick_exit(int status) noexcept {
  close_all();
  VELLUM_REAL(quick_exit)(status);
  __builtin_unreachable();
}
