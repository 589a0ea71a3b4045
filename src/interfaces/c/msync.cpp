// vellum_mmap() and related functions: see vellum/msync.h.
#include <sys/mman.h>
#include <unistd.h>
#include <vellum/msync.h>

#include <cerrno>
#include <cstdio>

#include "base/error_number.hpp"
#include "interfaces/atomic_file/mapped_files.hpp"
#include "interfaces/mapped_io/map_requests.hpp"

using vellum::atomic_file::MappedFiles;
using vellum::base::as_result;

extern "C" {

void* vellum_mmap(void*, size_t length_bytes, int, int flags, int fd, off_t offset_bytes) {
  void* address = nullptr;
  try {
    const auto tracker = vellum::atomic_file::tracker_from_environment(vellum::Tracker::pages);
    errno = MappedFiles::instance().map(length_bytes, flags, fd, offset_bytes, tracker, address);
  } catch (const vellum::Error& error) {
    std::fprintf(stderr, "vellum: %s\n", error.what());
    errno = EINVAL;
  }
  return address == nullptr ? MAP_FAILED : address;
}

int vellum_msync(void* address, size_t, int flags) {
  if (const int refused = vellum::mapped_io::refuse_msync(address, flags))
    return as_result(refused);
  return as_result(MappedFiles::instance().sync(address));
}

int vellum_munmap(void* address, size_t length_bytes) {
  return as_result(MappedFiles::instance().unmap(address, length_bytes));
}

void* vellum_mremap(void* address, size_t old_bytes, size_t new_bytes, int flags) {
  int error = vellum::mapped_io::refuse_remap(address, old_bytes, new_bytes, flags);
  if (error == 0) error = MappedFiles::instance().remap(address, old_bytes, new_bytes);
  return as_result(error) == 0 ? address : MAP_FAILED;
}

int vellum_ftruncate(int fd, off_t size_bytes) {
  MappedFiles& files = MappedFiles::instance();
  return files.mapped(fd) ? as_result(files.truncate(fd, size_bytes)) : ftruncate(fd, size_bytes);
}

}  // extern "C"
