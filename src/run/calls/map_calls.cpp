// mmap(2) and similar calls.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>

#include "base/error_number.hpp"
#include "interfaces/mapped_io/call_arguments.hpp"
#include "interfaces/mapped_io/map_requests.hpp"
#include "run/files/files.hpp"
#include "run/files/unseen_uses.hpp"
#include "run/live/read_views.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

std::shared_ptr<LiveFile> mapped_at(const void* address) {
  return ReentrancyGuard::is() ? nullptr : Files::instance().mappings().live_at(address);
}

void* map(int fd, size_t bytes, int protection, int flags, off_t offset) {
  if (ReentrancyGuard::is() || (flags & MAP_ANONYMOUS) != 0 || !Descriptors::known(fd))
    return nullptr;
  return Files::instance().mappings().map(fd, bytes, protection, flags, offset);
}

// A view (read_views.hpp) is private memory: if its pages were dropped, they would show an older
// state.
bool changes_view(int advice) {
  return mapped_io::advice_for_file(advice) != mapped_io::Advice::pass;
}

bool any_is_live(const iovec* pieces, size_t count) {
  for (size_t i = 0; pieces != nullptr && i < count; ++i)
    if (read_views().contains(pieces[i].iov_base) || mapped_at(pieces[i].iov_base) != nullptr)
      return true;
  return false;
}

}  // namespace
}  // namespace vellum::preload

using vellum::base::as_result;
using vellum::preload::Files;
using vellum::preload::mapped_at;
using vellum::preload::read_views;

VELLUM_PRELOAD void* mmap(void* at, size_t bytes, int protection, int flags, int fd,
                          off_t offset) noexcept {
  void* const mapped = vellum::preload::map(fd, bytes, protection, flags, offset);
  // A mapping over a live file's memory would destroy the only copy.
  if (mapped == nullptr && (flags & MAP_FIXED) != 0 && mapped_at(at) != nullptr)
    return errno = ENOTSUP, MAP_FAILED;
  if (mapped != nullptr) return mapped;
  if ((flags & MAP_FIXED) != 0) read_views().forget(at, bytes);
  if (fd >= 0 && (flags & MAP_ANONYMOUS) == 0 && !vellum::preload::ReentrancyGuard::is())
    vellum::preload::UnseenUses::note(fd);
  return VELLUM_REAL(mmap)(at, bytes, protection, flags, fd, offset);
}
VELLUM_PRELOAD void* mmap64(void* at, size_t bytes, int protection, int flags, int fd,
                            off64_t offset) noexcept {
  return mmap(at, bytes, protection, flags, fd, offset);
}

VELLUM_PRELOAD int munmap(void* at, size_t bytes) noexcept {
  if (mapped_at(at) == nullptr) {
    read_views().forget(at, bytes);
    return VELLUM_REAL(munmap)(at, bytes);
  }
  return as_result(Files::instance().mappings().unmap(at, bytes));
}

VELLUM_PRELOAD void* mremap(void* at, size_t bytes, size_t new_bytes, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* const wanted = vellum::mapped_io::new_address_of(flags, arguments);
  va_end(arguments);
  const bool onto_live = (flags & MREMAP_FIXED) != 0 && mapped_at(wanted) != nullptr;
  if (onto_live || read_views().contains(at)) return as_result(ENOTSUP), MAP_FAILED;
  if (mapped_at(at) == nullptr) {
    if ((flags & MREMAP_FIXED) != 0) read_views().forget(wanted, new_bytes);
    return VELLUM_REAL(mremap)(at, bytes, new_bytes, flags, wanted);
  }
  int error = vellum::mapped_io::refuse_remap(at, bytes, new_bytes, flags);
  if (error == 0) error = Files::instance().mappings().remap(at, bytes, new_bytes);
  return as_result(error) == 0 ? at : MAP_FAILED;
}

// All mappings of a live file share the same pages, which write(2) also uses: their protection is
// not changed.
VELLUM_PRELOAD int mprotect(void* at, size_t bytes, int protection) noexcept {
  const auto live = mapped_at(at);
  // For a view (read_views.hpp), this would change a private copy.
  if (live == nullptr && (protection & PROT_WRITE) != 0 && read_views().contains(at))
    return as_result(EACCES);
  if (live == nullptr) return VELLUM_REAL(mprotect)(at, bytes, protection);
  if ((protection & PROT_WRITE) != 0 && read_views().any_of(live->data())) return as_result(EBUSY);
  if ((protection & PROT_WRITE) != 0) live->note_mapped_writable();
  return (protection & PROT_EXEC) != 0 ? as_result(EACCES) : 0;
}

VELLUM_PRELOAD int pkey_mprotect(void* at, size_t bytes, int protection, int key) noexcept {
  return mapped_at(at) == nullptr && !read_views().contains(at)
             ? VELLUM_REAL(pkey_mprotect)(at, bytes, protection, key)
             : mprotect(at, bytes, protection);
}
VELLUM_PRELOAD int remap_file_pages(void* at, size_t bytes, int protection, size_t page,
                                    int flags) noexcept {
  return mapped_at(at) == nullptr
             ? VELLUM_REAL(remap_file_pages)(at, bytes, protection, page, flags)
             : as_result(ENOTSUP);
}

VELLUM_PRELOAD int msync(void* at, size_t bytes, int flags) {
  const auto live = mapped_at(at);
  if (live == nullptr) return VELLUM_REAL(msync)(at, bytes, flags);
  if (const int refused = vellum::mapped_io::refuse_msync(at, flags)) return as_result(refused);
  const auto how = (flags & MS_SYNC) != 0 ? &vellum::preload::LiveFile::flush
                                          : &vellum::preload::LiveFile::commit_soon;
  return as_result(Files::instance().commit_in_order(*live, how));
}

VELLUM_PRELOAD int madvise(void* at, size_t bytes, int advice) noexcept {
  const bool ours = (vellum::preload::changes_view(advice) && read_views().contains(at)) ||
                    mapped_at(at) != nullptr;
  return ours ? vellum::mapped_io::give_advice(at, advice, VELLUM_REAL(madvise), bytes)
              : VELLUM_REAL(madvise)(at, bytes, advice);
}
// With an empty list the kernel only checks whether this process permits the advice.
VELLUM_PRELOAD ssize_t process_madvise(int process, const iovec* pieces, size_t count, int advice,
                                       unsigned flags) noexcept {
  const auto real = [&](const iovec* of, size_t n) {
    return static_cast<ssize_t>(
        VELLUM_REAL(syscall)(SYS_process_madvise, process, of, n, advice, flags));
  };
  using vellum::mapped_io::Advice;
  if (vellum::mapped_io::advice_for_file(advice) == Advice::pass ||
      !vellum::preload::any_is_live(pieces, count))
    return real(pieces, count);
  return real(nullptr, 0) < 0 ? -1
                              : vellum::mapped_io::advise_pieces(pieces, count, advice, madvise);
}
VELLUM_PRELOAD int posix_madvise(void* at, size_t bytes, int advice) noexcept {
  if (advice != POSIX_MADV_DONTNEED || mapped_at(at) == nullptr)
    return VELLUM_REAL(posix_madvise)(at, bytes, advice);
  return 0;
}
