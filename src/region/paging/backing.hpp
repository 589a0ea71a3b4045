// region/paging/backing.hpp: the committed content of a region's pages, in memory.
//
// A memfd holds one copy of every page that has come in, as of the last commit: the page's base
// copy. The program's region is a MAP_PRIVATE mapping of the same memfd. Reading costs nothing
// extra. The first write to a page makes the kernel copy it, so the base copy keeps the old
// content, with which commit() compares. A second, shared mapping (the alias) gives access to read
// and patch base copies.
//
// Engine mapped has a file instead of the memfd, and its alias is a private mapping of that file:
// patches in the alias reach the file only when they are written to it.
//
// A page without a base copy is zero in the last commit. REQUIRES: base copy memory is touched only
// where has_base_copy() holds, or the memfd would grow a page there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/reserve.hpp"
#include "format/types.hpp"
#include "region/paging/bits.hpp"
#include "region/paging/pager.hpp"
#include "region/paging/sizes.hpp"

namespace vellum::region {

class Backing {
 public:
  // `image` is the file of engine mapped, which the caller closes after this object; or -1. Reports
  // every page to `pager`, except an image's. Throws Errc::out_of_memory, io.
  Backing(std::size_t capacity_bytes, Pager& pager, int image = -1);
  ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  int memfd() const noexcept { return memfd_; }
  std::byte* base_copy(format::PageNumber page) const noexcept {
    return alias_ + page * kPageBytes;
  }

  bool has_base_copy(format::PageNumber page) const noexcept {
    return (word(page).load(std::memory_order_acquire) >> (page % 64)) & 1;
  }
  void note_base_copies(format::PageNumber first, std::size_t count) noexcept;
  void drop_base_copies(format::PageNumber first,
                        std::size_t count) noexcept;  // frees their memory, too
  // The two halves of drop_base_copies(): forget_base_copies() leaves their memory, punch() frees
  // it.
  void forget_base_copies(format::PageNumber first, std::size_t count) noexcept;
  void punch(format::PageNumber first, std::size_t count) noexcept;
  // Maps base copies in advance: a commit's first look at a chunk's base copies then costs no
  // fault. The kernel maps the 64 KiB around a touched page ("fault-around"). REQUIRES: all have
  // base copies.
  void map_around(format::PageNumber first, std::size_t count) const noexcept {
    for (std::size_t i = 0; i < count; i += 16) {
      static_cast<void>(*static_cast<const volatile std::byte*>(base_copy(first + i)));
    }
  }
  // Which pages, at most 64, have base copies: one bit per page.
  std::uint64_t base_copies_in(format::PageNumber first, std::size_t count) const noexcept;
  std::int64_t base_copy_pages() const noexcept {
    return base_copy_pages_.load(std::memory_order_relaxed);
  }
  // Pages that the memfd holds, with or without base copies.
  std::int64_t file_pages() const noexcept;
  // Copies base copies out. 0 or errno. Async-signal-safe.
  int read(format::PageNumber first, std::span<std::byte> out) const noexcept;
  // Over an image: forgets the base copies and their patches; the file shows again.
  void forget(format::PageNumber first, std::size_t count) noexcept;

  // Copies bytes in with write(2). Each page becomes visible as a whole, to this mapping and to the
  // region's. This is cheaper than faulting the alias in. 0 or errno (ENOMEM, ENOSPC under a memory
  // limit). Async-signal-safe.
  int write(format::PageNumber first, std::span<const std::byte> bytes) noexcept;

 private:
  std::atomic<std::uint64_t>& word(format::PageNumber page) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(present_.data())[page / 64];
  }
  void count(std::int64_t pages) noexcept {
    if (over_image_) return;
    base_copy_pages_.fetch_add(pages, std::memory_order_relaxed);
    pager_.add_pages(pages);
  }
  void close_memfd() noexcept;
  int write_over_image(format::PageNumber first, std::span<const std::byte> bytes) noexcept;

  Pager& pager_;
  std::atomic<std::int64_t> base_copy_pages_{0};
  int memfd_ = -1;
  bool over_image_ = false;
  std::size_t capacity_ = 0;
  std::byte* alias_ = nullptr;
  base::Reservation present_;  // one bit per page
};

}  // namespace vellum::region
