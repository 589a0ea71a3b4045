// open(2) and similar calls. glibc has a second name of each for 64-bit offsets, which has the same
// effect here, and a third one that programs compiled with _FORTIFY_SOURCE call.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include "interfaces/mapped_io/call_arguments.hpp"
#include "run/files/files.hpp"
#include "run/files/old_version.hpp"
#include "run/process/descriptor_limit.hpp"
#include "run/process/real.hpp"

extern "C" int pidfd_getfd(int process, int fd, unsigned flags) noexcept;  // <sys/pidfd.h> is C's

namespace vellum::preload {
namespace {

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

// The version's name exists, which matters for O_EXCL.
int open_version(int directory, const char* path, const SeenPath& seen, int flags, mode_t mode) {
  const bool is_new = (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0;
  const bool changes = writes(flags) || (flags & O_TRUNC) != 0;
  if (is_new || !changes || (flags & (O_PATH | O_DIRECTORY)) != 0)
    return VELLUM_REAL(openat)(directory, seen.c_str(), flags, mode);
  std::fprintf(stderr, "vellum run: %s: %s\n", path, kReadOnly);
  errno = EROFS;
  return -1;
}

// An immediate truncation would destroy the last commit: it is delayed until the next commit.
int open_file(int directory, const char* path, int flags, mode_t mode) {
  if (ReentrancyGuard::is()) {
    const int fd = moved_to_high_number(VELLUM_REAL(openat)(directory, path, flags, mode));
    if (fd >= 0) Files::instance().own_descriptors().note(fd, true);
    return fd;
  }
  Files& files = Files::instance();
  const SeenPath seen(directory, path, (flags & O_NOFOLLOW) == 0);
  if (seen.is_version()) return open_version(directory, path, seen, flags, mode);
  if (!files.active() || seen.is_companion() || path == nullptr || (flags & O_PATH) != 0)
    return VELLUM_REAL(openat)(directory, seen.c_str(), flags, mode);
  if ((flags & O_CREAT) != 0) files.names().commit_before_new(directory, path);
  const bool cut = (flags & O_TRUNC) != 0 && FileNames::is_target(directory, path);
  const int fd = VELLUM_REAL(openat)(directory, path, cut ? flags & ~O_TRUNC : flags, mode);
  return fd < 0 ? fd : files.opened(fd, path, flags, cut);
}

// For descriptors without a path: by a handle, or from another process.
int adopt_received(int fd) {
  Files& files = Files::instance();
  if (fd < 0 || ReentrancyGuard::is() || !files.active() || files.shares_memory()) return fd;
  files.adopt_descriptor(fd);
  return fd;
}

// Handles descriptors that recvmsg(2) has received: unix(7), SCM_RIGHTS.
void adopt_received_in(msghdr* message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      adopt_received(fd);
    }
  }
}

// The path that shm_open(3) uses for a name. False: the name is invalid, or no file is watched.
bool path_of_shared(const char* name, char (&path)[PATH_MAX]) {
  if (ReentrancyGuard::is() || !Files::instance().active() || name == nullptr) return false;
  while (*name == '/') ++name;
  if (*name == 0 || std::strchr(name, '/') != nullptr || std::strlen(name) > NAME_MAX) return false;
  std::snprintf(path, sizeof path, "/dev/shm/%s", name);
  return true;
}

// For mkstemp(3) and similar functions: the name is known only afterwards.
int noted_as_opened(int fd, const char* path) {
  Files& files = Files::instance();
  if (fd < 0 || !files.active()) return fd;
  if (!ReentrancyGuard::is()) return files.opened(fd, path, O_RDWR, false);
  files.own_descriptors().note(fd, true);
  return fd;
}

// In a run with an old version, creates the file at the path where the program will open it.
template <typename Call>
int make_beside(char* pattern, const Call& call) {
  const SeenPath seen(AT_FDCWD, pattern, false);
  if (!seen.is_companion()) return noted_as_opened(call(pattern), pattern);
  std::string own = seen.c_str();
  const int fd = call(own.data());
  const std::size_t begin = own.rfind('/') + 1, length = own.size() - begin;
  own.copy(pattern + std::strlen(pattern) - length, length, begin);
  return fd;
}

}  // namespace
}  // namespace vellum::preload

using vellum::preload::open_file;

#define VELLUM_OPEN(name)                                             \
  VELLUM_PRELOAD int name(const char* path, int flags, ...) {         \
    va_list arguments;                                                \
    va_start(arguments, flags);                                       \
    const mode_t mode = vellum::mapped_io::mode_of(flags, arguments); \
    va_end(arguments);                                                \
    return open_file(AT_FDCWD, path, flags, mode);                    \
  }
#define VELLUM_OPENAT(name)                                                  \
  VELLUM_PRELOAD int name(int directory, const char* path, int flags, ...) { \
    va_list arguments;                                                       \
    va_start(arguments, flags);                                              \
    const mode_t mode = vellum::mapped_io::mode_of(flags, arguments);        \
    va_end(arguments);                                                       \
    return open_file(directory, path, flags, mode);                          \
  }
VELLUM_OPEN(open)
VELLUM_OPEN(open64)
VELLUM_OPENAT(openat)
VELLUM_OPENAT(openat64)

// NOLINTBEGIN(bugprone-reserved-identifier): the C library's names.
VELLUM_PRELOAD int __open_2(const char* path, int flags) {
  return open_file(AT_FDCWD, path, flags, 0);
}
VELLUM_PRELOAD int __open64_2(const char* path, int flags) {
  return open_file(AT_FDCWD, path, flags, 0);
}
VELLUM_PRELOAD int __openat_2(int directory, const char* path, int flags) {
  return open_file(directory, path, flags, 0);
}
VELLUM_PRELOAD int __openat64_2(int directory, const char* path, int flags) {
  return open_file(directory, path, flags, 0);
}
// NOLINTEND(bugprone-reserved-identifier)

// Other names of these functions in the C library: NOLINTBEGIN(bugprone-reserved-identifier)
VELLUM_OPEN(__open)
VELLUM_OPEN(__open64)
// NOLINTEND(bugprone-reserved-identifier)

VELLUM_PRELOAD int creat(const char* path, mode_t mode) {
  return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
VELLUM_PRELOAD int creat64(const char* path, mode_t mode) {
  return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

#define VELLUM_MAKE(suffix)                                                                    \
  VELLUM_PRELOAD int mkstemp##suffix(char* pattern) {                                          \
    return vellum::preload::make_beside(                                                       \
        pattern, [&](char* at) { return VELLUM_REAL(mkstemp##suffix)(at); });                  \
  }                                                                                            \
  VELLUM_PRELOAD int mkostemp##suffix(char* pattern, int flags) {                              \
    return vellum::preload::make_beside(                                                       \
        pattern, [&](char* at) { return VELLUM_REAL(mkostemp##suffix)(at, flags); });          \
  }                                                                                            \
  VELLUM_PRELOAD int mkstemps##suffix(char* pattern, int behind) {                             \
    return vellum::preload::make_beside(                                                       \
        pattern, [&](char* at) { return VELLUM_REAL(mkstemps##suffix)(at, behind); });         \
  }                                                                                            \
  VELLUM_PRELOAD int mkostemps##suffix(char* pattern, int behind, int flags) {                 \
    return vellum::preload::make_beside(                                                       \
        pattern, [&](char* at) { return VELLUM_REAL(mkostemps##suffix)(at, behind, flags); }); \
  }
VELLUM_MAKE()
VELLUM_MAKE(64)

// Whether the file is watched is known only after opening: then it is truncated.
VELLUM_PRELOAD int open_by_handle_at(int mount, file_handle* handle, int flags) {
  using vellum::preload::Files;
  const bool cut = (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) != O_RDONLY &&
                   !vellum::preload::ReentrancyGuard::is() && Files::instance().active();
  const int wanted = cut ? flags & ~O_TRUNC : flags;
  const int fd =
      vellum::preload::adopt_received(VELLUM_REAL(open_by_handle_at)(mount, handle, wanted));
  if (fd < 0 || !cut || ftruncate(fd, 0) == 0) return fd;
  const int error = errno;
  close(fd);
  return errno = error, -1;
}
VELLUM_PRELOAD int pidfd_getfd(int process, int fd, unsigned flags) noexcept {
  return vellum::preload::adopt_received(VELLUM_REAL(pidfd_getfd)(process, fd, flags));
}
VELLUM_PRELOAD ssize_t recvmsg(int socket, msghdr* message, int flags) {
  const ssize_t got = VELLUM_REAL(recvmsg)(socket, message, flags);
  if (got >= 0 && message->msg_controllen != 0) vellum::preload::adopt_received_in(message);
  return got;
}
VELLUM_PRELOAD int recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags,
                            timespec* timeout) {
  const int got = VELLUM_REAL(recvmmsg)(socket, messages, count, flags, timeout);
  for (int i = 0; i < got; ++i)
    if (messages[i].msg_hdr.msg_controllen != 0)
      vellum::preload::adopt_received_in(&messages[i].msg_hdr);
  return got;
}

VELLUM_PRELOAD int shm_open(const char* name, int flags, mode_t mode) {
  char path[PATH_MAX];
  if (!vellum::preload::path_of_shared(name, path)) return VELLUM_REAL(shm_open)(name, flags, mode);
  return open_file(AT_FDCWD, path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode);
}
VELLUM_PRELOAD int shm_unlink(const char* name) {
  char path[PATH_MAX];
  if (!vellum::preload::path_of_shared(name, path)) return VELLUM_REAL(shm_unlink)(name);
  const int result = unlink(path);
  if (result != 0 && errno == EPERM) errno = EACCES;
  return result;
}
