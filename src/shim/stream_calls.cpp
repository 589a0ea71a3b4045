// fopen(3) and fdopen(3): the C library's streams call the kernel behind this library's back, so
// one of a known file gets functions of its own (fopencookie(3)). fileno(3) of such a stream is -1.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "shim/files.hpp"
#include "shim/real.hpp"

namespace vellum::shim {
namespace {

int descriptor_of(void* cookie) { return static_cast<int>(reinterpret_cast<long>(cookie)); }

ssize_t read_cookie(void* cookie, char* to, size_t bytes) {
  return read(descriptor_of(cookie), to, bytes);
}
ssize_t write_cookie(void* cookie, const char* from, size_t bytes) {
  const ssize_t done = write(descriptor_of(cookie), from, bytes);
  return done < 0 ? 0 : done;  // what fopencookie(3) calls a failure
}
int seek_cookie(void* cookie, off64_t* offset, int whence) {
  const off64_t at = lseek(descriptor_of(cookie), *offset, whence);
  if (at < 0) return -1;
  *offset = at;
  return 0;
}
int close_cookie(void* cookie) { return close(descriptor_of(cookie)); }

FILE* stream_of(int fd, const char* mode) {
  return fopencookie(reinterpret_cast<void*>(static_cast<long>(fd)), mode,
                     {read_cookie, write_cookie, seek_cookie, close_cookie});
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
  if (Inside::is() || !files.active() || path == nullptr || mode == nullptr ||
      std::strchr("rwa", *mode) == nullptr || !files.may_name_target(path))
    return real(path, mode);
  const int fd = open(path, flags_of(mode), 0666);
  if (fd < 0) return nullptr;
  FILE* const stream = files.known(fd) ? stream_of(fd, mode) : VELLUM_REAL(fdopen)(fd, mode);
  if (stream == nullptr) close(fd);
  return stream;
}

}  // namespace
}  // namespace vellum::shim

using vellum::shim::Files;

VELLUM_SHIM FILE* fopen(const char* path, const char* mode) {
  return vellum::shim::open_stream(path, mode, VELLUM_REAL(fopen));
}
VELLUM_SHIM FILE* fopen64(const char* path, const char* mode) {
  return vellum::shim::open_stream(path, mode, VELLUM_REAL(fopen64));
}
VELLUM_SHIM FILE* fdopen(int fd, const char* mode) noexcept {
  return !vellum::shim::Inside::is() && Files::instance().known(fd)
             ? vellum::shim::stream_of(fd, mode)
             : VELLUM_REAL(fdopen)(fd, mode);
}
