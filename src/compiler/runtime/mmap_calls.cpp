// mmap(2) and similar calls. Files in VELLUM_ATOMIC_FILES are mapped atomically (vellum/msync.h);
// calls on all others are passed on.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vellum/msync.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "base/error_number.hpp"
#include "base/files/real_path.hpp"
#include "compiler/runtime/mapped_calls.hpp"
#include "compiler/runtime/marked.hpp"
#include "interfaces/atomic_file/mapped_files.hpp"
#include "interfaces/mapped_io/call_arguments.hpp"
#include "interfaces/mapped_io/map_requests.hpp"

using vellum::Tracker;
using vellum::atomic_file::MappedFiles;
using vellum::base::as_result;
using vellum::mapped_io::mode_of;
using vellum::mapped_io::new_address_of;
using vellum::msync::any_atomic_files;
using vellum::msync::is_mapped;

namespace {

MappedFiles& files() { return MappedFiles::instance(); }

// The kernel maps a file whose descriptor is read-only, unless the file is mapped atomically.
bool to_be_mapped(int flags, int fd) {
  const int type = flags & MAP_TYPE;
  if (!any_atomic_files() || fd < 0 || (flags & MAP_ANONYMOUS) != 0) return false;
  if (type != MAP_SHARED && type != MAP_SHARED_VALIDATE) return false;
  if (files().mapped(fd)) return true;
  return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR &&
         vellum::atomic_file::chosen_by_environment(vellum::base::path_of(fd));
}

void* map_atomically(size_t bytes, int flags, int fd, off_t offset) {
  void* address = nullptr;
  try {
    const Tracker tracker = vellum::atomic_file::tracker_from_environment(Tracker::cards_and_pages);
    errno = files().map(bytes, flags, fd, offset, tracker, address);
  } catch (const vellum::Error& error) {
    std::fprintf(stderr, "vellum: %s\n", error.what());
    errno = EINVAL;
  }
  return address == nullptr ? MAP_FAILED : address;
}

// Before a program opens a file, recovers it from its journal after a crash. A file in use is
// skipped.
void recover_before_open(int directory, const char* path) {
  if (!any_atomic_files() || path == nullptr) return;
  const int saved = errno;
  const int fd = openat(directory, path, O_PATH | O_CLOEXEC);
  if (fd >= 0) {
    const std::string whole = vellum::base::path_of(fd);
    const bool ours = files().mapped(fd);
    close(fd);
    if (!ours && vellum::atomic_file::chosen_by_environment(whole)) files().recover(whole);
  }
  errno = saved;
}

}  // namespace

VELLUM_WRAP(void*, mmap)(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (to_be_mapped(flags, fd)) return map_atomically(bytes, flags, fd, offset);
  return mmap(at, bytes, protection, flags, fd, offset);
}
VELLUM_WRAP(void*, mmap64)(void* at, size_t bytes, int protection, int flags, int fd,
                           off64_t offset) {
  if (to_be_mapped(flags, fd)) return map_atomically(bytes, flags, fd, offset);
  return mmap64(at, bytes, protection, flags, fd, offset);
}
VELLUM_WRAP(int, munmap)(void* at, size_t bytes) {
  return files().contains(at) ? vellum_munmap(at, bytes) : munmap(at, bytes);
}
VELLUM_WRAP(int, msync)(void* at, size_t bytes, int flags) {
  return files().contains(at) ? vellum_msync(at, bytes, flags) : msync(at, bytes, flags);
}
VELLUM_WRAP(void*, mremap)(void* at, size_t bytes, size_t new_bytes, int flags, ...) {
  if (files().contains(at)) return vellum_mremap(at, bytes, new_bytes, flags);
  va_list values;
  va_start(values, flags);
  void* const new_at = new_address_of(flags, values);
  va_end(values);
  return mremap(at, bytes, new_bytes, flags, new_at);
}
VELLUM_WRAP(int, ftruncate)(int fd, off_t bytes) { return vellum_ftruncate(fd, bytes); }
VELLUM_WRAP(int, ftruncate64)(int fd, off64_t bytes) { return vellum_ftruncate(fd, bytes); }

namespace {

int grown(int fd, off_t offset, off_t bytes) {
  struct stat status;
  if (fstat(fd, &status) != 0) return errno;
  if (offset < 0 || bytes <= 0) return EINVAL;
  return offset + bytes <= status.st_size ? 0 : files().truncate(fd, offset + bytes);
}

}  // namespace

VELLUM_WRAP(int, madvise)(void* at, size_t bytes, int advice) {
  return files().contains(at) ? vellum::mapped_io::give_advice(at, advice, madvise, bytes)
                              : madvise(at, bytes, advice);
}
// With an empty list the kernel only checks whether this process permits the advice.
VELLUM_WRAP(ssize_t, process_madvise)
(int process, const iovec* pieces, size_t count, int advice, unsigned flags) {
  const auto real = [&](const iovec* of, size_t n) {
    return static_cast<ssize_t>(syscall(SYS_process_madvise, process, of, n, advice, flags));
  };
  using vellum::mapped_io::Advice;
  bool any = false;
  for (size_t i = 0; any_atomic_files() && pieces != nullptr && i < count; ++i)
    any = any || files().contains(pieces[i].iov_base);
  if (!any || vellum::mapped_io::advice_for_file(advice) == Advice::pass)
    return real(pieces, count);
  if (real(nullptr, 0) < 0) return -1;
  return vellum::mapped_io::advise_pieces(pieces, count, advice, vellum_wrap_madvise);
}
VELLUM_WRAP(int, posix_madvise)(void* at, size_t bytes, int advice) {
  return advice == POSIX_MADV_DONTNEED && files().contains(at) ? 0
                                                               : posix_madvise(at, bytes, advice);
}
VELLUM_WRAP(int, fallocate)(int fd, int mode, off_t offset, off_t bytes) {
  if (!is_mapped(fd) || mode == FALLOC_FL_KEEP_SIZE) return fallocate(fd, mode, offset, bytes);
  return as_result(mode == 0 ? grown(fd, offset, bytes) : EOPNOTSUPP);
}
VELLUM_WRAP(int, fallocate64)(int fd, int mode, off64_t offset, off64_t bytes) {
  if (!is_mapped(fd) || mode == FALLOC_FL_KEEP_SIZE) return fallocate64(fd, mode, offset, bytes);
  return as_result(mode == 0 ? grown(fd, offset, bytes) : EOPNOTSUPP);
}
VELLUM_WRAP(int, posix_fallocate)(int fd, off_t offset, off_t bytes) {
  return is_mapped(fd) ? grown(fd, offset, bytes) : posix_fallocate(fd, offset, bytes);
}
VELLUM_WRAP(int, posix_fallocate64)(int fd, off64_t offset, off64_t bytes) {
  return is_mapped(fd) ? grown(fd, offset, bytes) : posix_fallocate64(fd, offset, bytes);
}
VELLUM_WRAP(int, close)(int fd) { return close(fd); }

VELLUM_WRAP(int, open)(const char* path, int flags, ...) {
  recover_before_open(AT_FDCWD, path);
  va_list values;
  va_start(values, flags);
  const mode_t mode = mode_of(flags, values);
  va_end(values);
  return open(path, flags, mode);
}
VELLUM_WRAP(int, open64)(const char* path, int flags, ...) {
  recover_before_open(AT_FDCWD, path);
  va_list values;
  va_start(values, flags);
  const mode_t mode = mode_of(flags, values);
  va_end(values);
  return open64(path, flags, mode);
}
VELLUM_WRAP(int, openat)(int directory, const char* path, int flags, ...) {
  recover_before_open(directory, path);
  va_list values;
  va_start(values, flags);
  const mode_t mode = mode_of(flags, values);
  va_end(values);
  return openat(directory, path, flags, mode);
}
VELLUM_WRAP(int, openat64)(int directory, const char* path, int flags, ...) {
  recover_before_open(directory, path);
  va_list values;
  va_start(values, flags);
  const mode_t mode = mode_of(flags, values);
  va_end(values);
  return openat64(directory, path, flags, mode);
}
VELLUM_WRAP(int, creat)(const char* path, mode_t mode) {
  recover_before_open(AT_FDCWD, path);
  return creat(path, mode);
}
VELLUM_WRAP(FILE*, fopen)(const char* path, const char* mode) {
  recover_before_open(AT_FDCWD, path);
  return fopen(path, mode);
}
VELLUM_WRAP(FILE*, fopen64)(const char* path, const char* mode) {
  recover_before_open(AT_FDCWD, path);
  return fopen64(path, mode);
}
