// Memory mappings and what makes files durable: passed on.
#include <cstdarg>

#include <sys/mman.h>
#include <unistd.h>

#include "msync/marked.hpp"

VELLUM_WRAP(void*, mmap)(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return mmap(at, bytes, protection, flags, fd, offset);
}
VELLUM_WRAP(void*, mmap64)(void* at, size_t bytes, int protection, int flags, int fd,
                           off64_t offset) {
  return mmap64(at, bytes, protection, flags, fd, offset);
}
VELLUM_WRAP(int, munmap)(void* at, size_t bytes) { return munmap(at, bytes); }
VELLUM_WRAP(int, msync)(void* at, size_t bytes, int flags) { return msync(at, bytes, flags); }
VELLUM_WRAP(void*, mremap)(void* at, size_t bytes, size_t new_bytes, int flags, ...) {
  va_list values;
  va_start(values, flags);
  void* new_at = (flags & MREMAP_FIXED) != 0 ? va_arg(values, void*) : nullptr;
  va_end(values);
  return mremap(at, bytes, new_bytes, flags, new_at);
}
VELLUM_WRAP(int, ftruncate)(int fd, off_t bytes) { return ftruncate(fd, bytes); }
VELLUM_WRAP(int, ftruncate64)(int fd, off64_t bytes) { return ftruncate64(fd, bytes); }
VELLUM_WRAP(int, fsync)(int fd) { return fsync(fd); }
VELLUM_WRAP(int, fdatasync)(int fd) { return fdatasync(fd); }
VELLUM_WRAP(int, close)(int fd) { return close(fd); }
