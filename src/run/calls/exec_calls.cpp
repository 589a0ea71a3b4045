// Programs that this one starts: execve(2), posix_spawn(3), system(3) and similar calls. The
// library is loaded into them, whatever their environment (exec_environment.hpp). A program that it
// cannot intercept is reported before it runs (program_kind.hpp).
//
// A child of vfork(2) calls these: nothing here allocates, except if the C library does so itself.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wordexp.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "run/files/files.hpp"
#include "run/files/old_version.hpp"
#include "run/process/real.hpp"
#include "run/run/exec_environment.hpp"
#include "run/run/program_kind.hpp"
#include "run/run/run_record.hpp"
#include "run/run/watch.hpp"

namespace vellum::preload {
namespace {

// The next program does not have this process's memory.
void commit_all() noexcept {
  if (Files::instance().active() && !Files::instance().shares_memory())
    Files::instance().commit_all();
}

// The limit for the arguments of execl(3) and similar functions.
constexpr std::size_t kMaxWords = 8192;

struct Words {
  char* words[kMaxWords];
  bool take(const char* first, va_list& arguments) {
    words[0] = const_cast<char*>(first);
    for (std::size_t i = 0; i + 1 < kMaxWords; ++i) {
      if (words[i] == nullptr) return true;
      words[i + 1] = va_arg(arguments, char*);
    }
    errno = E2BIG;
    return false;
  }
};

void report_program(const char* path, ProgramKind kind) noexcept {
  if (kind == ProgramKind::preloadable || kind == ProgramKind::unknown) return;
  if (!note_program(path, kind)) return;
  std::fprintf(stderr, "vellum run: %s %s; %s\n", path, what_it_means(kind),
               WatchedFiles::instance().has_copies()
                   ? "it sees the file itself, and not the version"
                   : "its writes are recorded when the run has ended");
}

// Finds the file in PATH, as execvp(3) does. False: it is not found, or its path is too long.
bool find_in_path(const char* file, char (&path)[PATH_MAX]) noexcept {
  const char* const directories = getenv("PATH");
  const std::string_view name(file);
  for (std::string_view left(directories != nullptr ? directories : "/bin:/usr/bin");;) {
    const std::string_view directory = left.substr(0, left.find(':'));
    const int length =
        std::snprintf(path, sizeof path, "%.*s%s%s", static_cast<int>(directory.size()),
                      directory.data(), directory.empty() ? "" : "/", file);
    if (length > 0 && length < PATH_MAX && VELLUM_REAL(faccessat)(AT_FDCWD, path, X_OK, 0) == 0)
      return true;
    if (directory.size() == left.size()) return false;
    left.remove_prefix(directory.size() + 1);
  }
}

// Call before a program is started by its path, or by its name in PATH.
void check_program(int directory, const char* file, bool in_path) noexcept {
  if (file == nullptr || *file == '\0' || !Files::instance().active()) return;
  const int before = errno;
  char path[PATH_MAX];
  note_whether_record_is_reachable();
  if (in_path && std::strchr(file, '/') == nullptr) {
    if (find_in_path(file, path)) report_program(path, kind_of_program(path));
  } else {
    const int fd = VELLUM_REAL(openat)(directory, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    std::snprintf(path, sizeof path, "%s", file);
    if (fd >= 0) report_program(path, kind_of_program(fd, path));
    if (fd >= 0) VELLUM_REAL(close)(fd);
  }
  errno = before;
}

void check_program(int fd) noexcept {
  char path[PATH_MAX];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  check_program(AT_FDCWD, path, false);
}

}  // namespace
}  // namespace vellum::preload

using vellum::preload::check_program;
using vellum::preload::commit_all;
using vellum::preload::Files;
using vellum::preload::start_with_ours;

VELLUM_PRELOAD int execve(const char* path, char* const words[],
                          char* const environment[]) noexcept {
  commit_all();
  check_program(AT_FDCWD, path, false);
  return start_with_ours(environment, [&](char* const* ours) noexcept {
    return VELLUM_REAL(execve)(path, words, ours);
  });
}
VELLUM_PRELOAD int execv(const char* path, char* const words[]) noexcept {
  return execve(path, words, environ);
}
VELLUM_PRELOAD int execvpe(const char* file, char* const words[],
                           char* const environment[]) noexcept {
  commit_all();
  check_program(AT_FDCWD, file, true);
  return start_with_ours(environment, [&](char* const* ours) noexcept {
    return VELLUM_REAL(execvpe)(file, words, ours);
  });
}
VELLUM_PRELOAD int execvp(const char* file, char* const words[]) noexcept {
  return execvpe(file, words, environ);
}
VELLUM_PRELOAD int fexecve(int fd, char* const words[], char* const environment[]) noexcept {
  commit_all();
  check_program(fd);
  return start_with_ours(environment, [&](char* const* ours) noexcept {
    return VELLUM_REAL(fexecve)(fd, words, ours);
  });
}
VELLUM_PRELOAD int execveat(int directory, const char* path, char* const words[],
                            char* const environment[], int flags) noexcept {
  commit_all();
  if (path != nullptr && *path == '\0' && (flags & AT_EMPTY_PATH) != 0)
    check_program(directory);
  else
    check_program(directory, path, false);
  return start_with_ours(environment, [&](char* const* ours) noexcept {
    return VELLUM_REAL(execveat)(directory, path, words, ours, flags);
  });
}

#define VELLUM_EXEC_LIST(name, call)                                           \
  VELLUM_PRELOAD int name(const char* path, const char* first, ...) noexcept { \
    vellum::preload::Words list;                                               \
    va_list arguments;                                                         \
    va_start(arguments, first);                                                \
    const bool taken = list.take(first, arguments);                            \
    va_end(arguments);                                                         \
    return taken ? call(path, list.words) : -1;                                \
  }
VELLUM_EXEC_LIST(execl, execv)
VELLUM_EXEC_LIST(execlp, execvp)

VELLUM_PRELOAD int execle(const char* path, const char* first, ...) noexcept {
  vellum::preload::Words list;
  va_list arguments;
  va_start(arguments, first);
  const bool taken = list.take(first, arguments);
  char* const* const environment = taken ? va_arg(arguments, char* const*) : nullptr;
  va_end(arguments);
  return taken ? execve(path, list.words, environment) : -1;
}

VELLUM_PRELOAD int posix_spawn(pid_t* process, const char* path,
                               const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const words[],
                               char* const environment[]) noexcept {
  Files::instance().settle();
  check_program(AT_FDCWD, path, false);
  return start_with_ours(environment, [&](char* const* ours) noexcept {
    return VELLUM_REAL(posix_spawn)(process, path, actions, attributes, words, ours);
  });
}
VELLUM_PRELOAD int posix_spawnp(pid_t* process, const char* file,
                                const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const words[],
                                char* const environment[]) noexcept {
  Files::instance().settle();
  check_program(AT_FDCWD, file, true);
  return start_with_ours(environment, [&](char* const* ours) noexcept {
    return VELLUM_REAL(posix_spawnp)(process, file, actions, attributes, words, ours);
  });
}

// The child would open its files without this library.
VELLUM_PRELOAD int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t* actions, int fd,
                                                    const char* path, int flags,
                                                    mode_t mode) noexcept {
  const vellum::preload::SeenPath seen(AT_FDCWD, path);
  if (seen.is_version() && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0))
    return EROFS;
  return VELLUM_REAL(posix_spawn_file_actions_addopen)(actions, fd, seen.c_str(), flags, mode);
}

// The C library starts the shell with the process's own environment.
VELLUM_PRELOAD int system(const char* command) {
  Files::instance().settle();
  vellum::preload::restore_environment();
  return VELLUM_REAL(system)(command);
}
VELLUM_PRELOAD FILE* popen(const char* command, const char* mode) {
  Files::instance().settle();
  vellum::preload::restore_environment();
  return VELLUM_REAL(popen)(command, mode);
}
VELLUM_PRELOAD int wordexp(const char* words, wordexp_t* expanded, int flags) {
  Files::instance().settle();
  vellum::preload::restore_environment();
  return VELLUM_REAL(wordexp)(words, expanded, flags);
}
