#include "region/paging/backing.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "region/kernel/racing_page.hpp"

namespace vellum::region {
namespace {

[[noreturn]] void refuse(const char* what, std::size_t bytes) {
  fail(Errc::out_of_memory, "cannot reserve {} bytes for a region ({}): {}", bytes, what,
       std::strerror(errno));
}

}  // namespace

Backing::Backing(std::size_t capacity_bytes, Pager& pager, int image)
    : pager_(pager),
      over_image_(image >= 0),
      capacity_(capacity_bytes),
      present_(capacity_bytes / kPageBytes / 8 + sizeof(std::uint64_t)) {
  memfd_ = over_image_ ? image : memfd_create("vellum", MFD_CLOEXEC);
  if (memfd_ < 0) refuse("memfd_create", capacity_bytes);
  if (!over_image_ && ftruncate(memfd_, static_cast<off_t>(capacity_bytes)) != 0) {
    close_memfd();
    refuse("ftruncate", capacity_bytes);
  }
  const int sharing = over_image_ ? MAP_PRIVATE : MAP_SHARED;
  void* map =
      mmap(nullptr, capacity_bytes, PROT_READ | PROT_WRITE, sharing | MAP_NORESERVE, memfd_, 0);
  if (map == MAP_FAILED) {
    close_memfd();
    refuse("mmap", capacity_bytes);
  }
  alias_ = static_cast<std::byte*>(map);
  madvise(alias_, capacity_bytes, MADV_DONTFORK);
  madvise(alias_, capacity_bytes, MADV_DONTDUMP);
}

Backing::~Backing() {
  pager_.add_pages(-base_copy_pages_.load());
  munmap(alias_, capacity_);
  close_memfd();
}

void Backing::close_memfd() noexcept {
  const int error = errno;
  if (!over_image_) close(memfd_);
  errno = error;
}

void Backing::note_base_copies(format::PageNumber first, std::size_t count_pages) noexcept {
  std::int64_t fresh = 0;
  for (std::size_t i = 0; i < count_pages;) {
    const auto page = first + i;
    const auto bit = page % 64;
    const auto n = std::min<std::size_t>(64 - bit, count_pages - i);
    const std::uint64_t mask = bits_below(n) << bit;
    fresh += __builtin_popcountll(mask & ~word(page).fetch_or(mask, std::memory_order_release));
    i += n;
  }
  count(fresh);
}

void Backing::forget_base_copies(format::PageNumber first, std::size_t count_pages) noexcept {
  std::int64_t gone = 0;
  for (std::size_t i = 0; i < count_pages; ++i) {
    const std::uint64_t bit = 1ULL << ((first + i) % 64);
    gone += (word(first + i).fetch_and(~bit, std::memory_order_acq_rel) & bit) != 0;
  }
  count(-gone);
}

void Backing::forget(format::PageNumber first, std::size_t count_pages) noexcept {
  forget_base_copies(first, count_pages);
  madvise(alias_ + first * kPageBytes, count_pages * kPageBytes, MADV_DONTNEED);
}

void Backing::punch(format::PageNumber first, std::size_t count_pages) noexcept {
  if (over_image_) return;
  fallocate(memfd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(first * kPageBytes), static_cast<off_t>(count_pages * kPageBytes));
}

void Backing::drop_base_copies(format::PageNumber first, std::size_t count_pages) noexcept {
  forget_base_copies(first, count_pages);
  punch(first, count_pages);
}

std::uint64_t Backing::base_copies_in(format::PageNumber first,
                                      std::size_t count_pages) const noexcept {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < count_pages; ++i)
    mask |= std::uint64_t{has_base_copy(first + i)} << i;
  return mask;
}

std::int64_t Backing::file_pages() const noexcept {
  struct stat status{};
  if (fstat(memfd_, &status) != 0) return base_copy_pages();
  return static_cast<std::int64_t>(status.st_blocks) * 512 / static_cast<std::int64_t>(kPageBytes);
}

int Backing::read(format::PageNumber first, std::span<std::byte> out) const noexcept {
  auto offset = static_cast<off_t>(first * kPageBytes);
  while (!out.empty()) {
    const long n = syscall(SYS_pread64, memfd_, out.data(), out.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    out = out.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
  return 0;
}

// A page that equals the file's stays the file's, so attaching a large file takes no memory.
int Backing::write_over_image(format::PageNumber first, std::span<const std::byte> bytes) noexcept {
  std::byte page[kPageBytes];
  for (std::size_t at = 0; at < bytes.size(); at += kPageBytes) {
    copy_racing_page(page, bytes.data() + at);
    std::byte* const base_copy = alias_ + first * kPageBytes + at;
    if (std::memcmp(base_copy, page, kPageBytes) != 0) std::memcpy(base_copy, page, kPageBytes);
  }
  return 0;
}

int Backing::write(format::PageNumber first, std::span<const std::byte> bytes) noexcept {
  if (over_image_) return write_over_image(first, bytes);
  auto offset = static_cast<off_t>(first * kPageBytes);
  while (!bytes.empty()) {
    // The bare system call: `bytes` may be region memory that other threads are writing, which is
    // allowed here and would be reported by a sanitizer's wrapper of pwrite.
    const long n = syscall(SYS_pwrite64, memfd_, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
  return 0;
}

}  // namespace vellum::region
