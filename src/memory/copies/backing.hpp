// memory/copies/backing.hpp: the committed content of a region's pages, in memory.
//
// A file holds one copy of every page that has come in, as of the last commit: the page's base
// copy. The program's region is a MAP_PRIVATE mapping of that file. Reading costs nothing extra.
// The first write to a page makes the kernel copy it, so the base copy keeps the old content, with
// which commit() compares. A second mapping (the alias) gives access to read and patch base copies.
//
// The file is a memfd (MemfdBacking) or, with engine mapped, the branch's image (ImageBacking).
//
// A page without a base copy is zero in the last commit. REQUIRES: base copy memory is touched only
// where has_base_copy() holds, or the file would grow a page there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory/reserve.hpp"
#include "format/wire/types.hpp"
#include "memory/paging/sizes.hpp"

namespace vellum::region {

class Backing {
 public:
  virtual ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  int file() const noexcept { return file_; }
  std::byte* base_copy(format::PageNumber page) const noexcept {
    return alias_ + page * kPageBytes;
  }

  bool has_base_copy(format::PageNumber page) const noexcept {
    return (word(page).load(std::memory_order_acquire) >> (page % 64)) & 1;
  }
  // Which pages, at most 64, have base copies: one bit per page.
  std::uint64_t base_copies_in(format::PageNumber first, std::size_t count) const noexcept;
  void note_base_copies(format::PageNumber first, std::size_t count) noexcept;
  // Leaves their memory as it is.
  void forget_base_copies(format::PageNumber first, std::size_t count) noexcept;

  // forget_base_copies(), and gives back the memory that they take.
  virtual void drop_base_copies(format::PageNumber first, std::size_t count) noexcept = 0;
  // Copies bytes in. Each page becomes visible as a whole. 0 or errno (ENOMEM, ENOSPC under a
  // memory limit). Async-signal-safe.
  virtual int write(format::PageNumber first, std::span<const std::byte> bytes) noexcept = 0;

 protected:
  // Maps the alias of `file`, which must stay open meanwhile. `sharing`: MAP_SHARED or MAP_PRIVATE.
  // Throws Errc::out_of_memory.
  Backing(std::size_t capacity_bytes, int file, int sharing);

  // So many base copies more, or fewer.
  virtual void count(std::int64_t pages) noexcept = 0;

 private:
  std::atomic<std::uint64_t>& word(format::PageNumber page) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(present_.data())[page / 64];
  }

  const int file_;
  const std::size_t capacity_;
  std::byte* alias_ = nullptr;
  base::Reservation present_;  // one bit per page
};

}  // namespace vellum::region
