// mmap(2) and its like.
#include <sys/mman.h>

#include <cerrno>
#include <cstdarg>

#include "base/error_number.hpp"
#include "shim/files.hpp"
#include "shim/real.hpp"

namespace vellum::shim {
namespace {

std::shared_ptr<LiveFile> mapped_at(const void* address) {
  return Inside::is() ? nullptr : Files::instance().mapped_at(address);
}

void* map(int fd, size_t bytes, int protection, int flags, off_t offset) {
  if (Inside::is() || (flags & MAP_ANONYMOUS) != 0 || !Files::instance().known(fd)) return nullptr;
  return Files::instance().map(fd, bytes, protection, flags, offset);
}

// On a shared mapping these only say what may leave memory. Here the memory is the only copy.
bool drops_memory(int advice) {
  return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
         advice == MADV_WIPEONFORK || advice == MADV_DONTFORK;
}

}  // namespace
}  // namespace vellum::shim

using vellum::base::as_result;
using vellum::shim::Files;
using vellum::shim::mapped_at;

VELLUM_SHIM void* mmap(void* at, size_t bytes, int protection, int flags, int fd,
                       off_t offset) noexcept {
  void* const mapped = vellum::shim::map(fd, bytes, protection, flags, offset);
  return mapped != nullptr ? mapped : VELLUM_REAL(mmap)(at, bytes, protection, flags, fd, offset);
}
VELLUM_SHIM void* mmap64(void* at, size_t bytes, int protection, int flags, int fd,
                         off64_t offset) noexcept {
  return mmap(at, bytes, protection, flags, fd, offset);
}

VELLUM_SHIM int munmap(void* at, size_t bytes) noexcept {
  if (mapped_at(at) == nullptr) return VELLUM_REAL(munmap)(at, bytes);
  return as_result(Files::instance().unmap(at, bytes));
}

VELLUM_SHIM void* mremap(void* at, size_t bytes, size_t new_bytes, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* const wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  if (mapped_at(at) == nullptr) return VELLUM_REAL(mremap)(at, bytes, new_bytes, flags, wanted);
  const int error =
      (flags & MREMAP_FIXED) != 0 ? ENOTSUP : Files::instance().remap(at, bytes, new_bytes);
  return as_result(error) == 0 ? at : MAP_FAILED;
}

// All mappings of a live file are of the same pages, which a write(2) goes through, too: they stay
// as they are.
VELLUM_SHIM int mprotect(void* at, size_t bytes, int protection) noexcept {
  const auto live = mapped_at(at);
  if (live == nullptr) return VELLUM_REAL(mprotect)(at, bytes, protection);
  if ((protection & PROT_WRITE) != 0) live->note_mapped_writable();
  return (protection & PROT_EXEC) != 0 ? as_result(EACCES) : 0;
}

VELLUM_SHIM int msync(void* at, size_t bytes, int flags) {
  const auto live = mapped_at(at);
  if (live == nullptr) return VELLUM_REAL(msync)(at, bytes, flags);
  return as_result((flags & MS_SYNC) != 0 ? live->flush() : live->commit_soon());
}

VELLUM_SHIM int madvise(void* at, size_t bytes, int advice) noexcept {
  if (!vellum::shim::drops_memory(advice) || mapped_at(at) == nullptr)
    return VELLUM_REAL(madvise)(at, bytes, advice);
  return advice == MADV_REMOVE ? as_result(EOPNOTSUPP) : 0;
}
VELLUM_SHIM int posix_madvise(void* at, size_t bytes, int advice) noexcept {
  if (advice != POSIX_MADV_DONTNEED || mapped_at(at) == nullptr)
    return VELLUM_REAL(posix_madvise)(at, bytes, advice);
  return 0;
}
