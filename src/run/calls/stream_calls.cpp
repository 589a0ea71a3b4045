// fopen(3), fdopen(3), dprintf(3): the C library's streams would bypass this library, so the stream
// of a known file gets custom functions (fopencookie(3)).
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>

#include "run/files/files.hpp"
#include "run/files/old_version.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

int descriptor_of(void* cookie) { return static_cast<int>(reinterpret_cast<long>(cookie)); }

ssize_t read_cookie(void* cookie, char* to, size_t bytes) {
  return read(descriptor_of(cookie), to, bytes);
}
ssize_t write_cookie(void* cookie, const char* from, size_t bytes) {
  const ssize_t done = write(descriptor_of(cookie), from, bytes);
  return done < 0 ? 0 : done;  // a cookie's function reports failure in this way
}
int seek_cookie(void* cookie, off64_t* offset, int whence) {
  const off64_t at = lseek(descriptor_of(cookie), *offset, whence);
  if (at < 0) return -1;
  *offset = at;
  return 0;
}
int close_cookie(void* cookie) { return close(descriptor_of(cookie)); }

FILE* stream_of(int fd, const char* mode) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a cookie is no address
  auto* const cookie = reinterpret_cast<void*>(static_cast<long>(fd));
  FILE* const stream =
      fopencookie(cookie, mode, {read_cookie, write_cookie, seek_cookie, close_cookie});
  // For fileno(3) only, as in fsync(fileno(stream)): the functions ignore it.
  if (stream != nullptr) stream->_fileno = fd;
  return stream;
}

int flags_of(const char* mode) {
  int flags = 0;
  if (*mode == 'w') flags = O_CREAT | O_TRUNC;
  if (*mode == 'a') flags = O_CREAT | O_APPEND;
  const bool both = std::strchr(mode, '+') != nullptr;
  flags |= both ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
  if (std::strchr(mode, 'x') != nullptr) flags |= O_EXCL;
  if (std::strchr(mode, 'e') != nullptr) flags |= O_CLOEXEC;
  return flags;
}

FILE* open_stream(const char* path, const char* mode, FILE* (*real)(const char*, const char*)) {
  Files& files = Files::instance();
  if (ReentrancyGuard::is() || !files.active() || path == nullptr || mode == nullptr ||
      std::strchr("rwa", *mode) == nullptr)
    return real(path, mode);
  const int fd = open(path, flags_of(mode), 0666);
  if (fd < 0) return nullptr;
  FILE* const stream = Descriptors::known(fd) ? stream_of(fd, mode) : VELLUM_REAL(fdopen)(fd, mode);
  if (stream == nullptr) close(fd);
  return stream;
}

// getmntent(3) reads any file in the format of a mount table.
FILE* open_mount_table(const char* path, const char* mode) {
  const Files& files = Files::instance();
  return !ReentrancyGuard::is() && files.active() && path != nullptr && mode != nullptr &&
                 FileNames::may_be_target(path)
             ? fopen(path, mode)
             : VELLUM_REAL(setmntent)(path, mode);
}

// The stream remains the C library's own: it may be one of the standard streams.
FILE* reopen_stream(const char* path, const char* mode, FILE* stream,
                    FILE* (*real)(const char*, const char*, FILE*)) {
  Files& files = Files::instance();
  const bool reads_only = mode != nullptr && *mode == 'r' && std::strchr(mode, '+') == nullptr;
  const SeenPath seen(AT_FDCWD, path);
  if (seen.is_companion() || (seen.is_version() && reads_only))
    return real(seen.c_str(), mode, stream);
  if (ReentrancyGuard::is() || !files.active() || path == nullptr || reads_only ||
      !(seen.is_version() || FileNames::may_be_target(path) ||
        FileNames::is_target(AT_FDCWD, path)))
    return real(path, mode, stream);
  std::fprintf(stderr, "vellum run: %s: %s\n", path,
               seen.is_version() ? kReadOnly : "cannot be written by freopen()");
  fclose(stream);
  errno = seen.is_version() ? EROFS : ENOTSUP;
  return nullptr;
}

int print(int fd, const char* format, va_list arguments) {
  char* text = nullptr;
  const int length = vasprintf(&text, format, arguments);
  if (length < 0) return -1;
  const auto done = write(fd, text, static_cast<std::size_t>(length));
  std::free(text);
  return done < 0 ? -1 : length;
}

}  // namespace
}  // namespace vellum::preload

using vellum::preload::Files;

VELLUM_PRELOAD FILE* fopen(const char* path, const char* mode) {
  return vellum::preload::open_stream(path, mode, VELLUM_REAL(fopen));
}
VELLUM_PRELOAD FILE* fopen64(const char* path, const char* mode) {
  return vellum::preload::open_stream(path, mode, VELLUM_REAL(fopen64));
}
VELLUM_PRELOAD FILE* fdopen(int fd, const char* mode) noexcept {
  return !vellum::preload::ReentrancyGuard::is() && vellum::preload::Descriptors::known(fd)
             ? vellum::preload::stream_of(fd, mode)
             : VELLUM_REAL(fdopen)(fd, mode);
}

// Other names of these functions in the C library: NOLINTBEGIN(bugprone-reserved-identifier)
VELLUM_PRELOAD FILE* _IO_fopen(const char* path, const char* mode) { return fopen(path, mode); }
VELLUM_PRELOAD FILE* _IO_fdopen(int fd, const char* mode) noexcept { return fdopen(fd, mode); }
// NOLINTEND(bugprone-reserved-identifier)

VELLUM_PRELOAD FILE* setmntent(const char* path, const char* mode) noexcept {
  return vellum::preload::open_mount_table(path, mode);
}
// NOLINTNEXTLINE(bugprone-reserved-identifier): the C library's name.
VELLUM_PRELOAD FILE* __setmntent(const char* path, const char* mode) noexcept {
  return vellum::preload::open_mount_table(path, mode);
}

VELLUM_PRELOAD FILE* freopen(const char* path, const char* mode, FILE* stream) {
  return vellum::preload::reopen_stream(path, mode, stream, VELLUM_REAL(freopen));
}
VELLUM_PRELOAD FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  return vellum::preload::reopen_stream(path, mode, stream, VELLUM_REAL(freopen64));
}

VELLUM_PRELOAD int vdprintf(int fd, const char* format, va_list arguments) {
  return !vellum::preload::ReentrancyGuard::is() && vellum::preload::Descriptors::known(fd)
             ? vellum::preload::print(fd, format, arguments)
             : VELLUM_REAL(vdprintf)(fd, format, arguments);
}
VELLUM_PRELOAD int dprintf(int fd, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int done = vdprintf(fd, format, arguments);
  va_end(arguments);
  return done;
}
// NOLINTBEGIN(bugprone-reserved-identifier): the names that _FORTIFY_SOURCE calls.
VELLUM_PRELOAD int __vdprintf_chk(int fd, int, const char* format, va_list arguments) {
  return vdprintf(fd, format, arguments);
}
VELLUM_PRELOAD int __dprintf_chk(int fd, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int done = vdprintf(fd, format, arguments);
  va_end(arguments);
  return done;
}
// NOLINTEND(bugprone-reserved-identifier)
