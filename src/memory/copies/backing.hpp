// memory/copies/backing.hpp: the committed content of a region's pages, in memory.
//
// A file has one copy of every page in memory, as of the last commit: the page's base copy. The
// program's region is a MAP_PRIVATE mapping of that file, so reading costs nothing extra. At the
// first write to a page the kernel copies it. The base copy keeps the old content, and commit()
// compares with it. A second mapping (the alias) reads and patches base copies.
//
// The file is a memfd (MemfdBacking) or, with engine mapped, the branch's image (ImageBacking).
//
// A page without a base copy is zero in the last commit. REQUIRES: base copy memory is accessed
// only where has_base_copy() holds; otherwise the file would get a page there.
#pragma once

#include <atomic>
#include <cassert>
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
    assert(page * kPageBytes < capacity_);
    return alias_ + page * kPageBytes;
  }

  bool has_base_copy(format::PageNumber page) const noexcept {
    return (word(page).load(std::memory_order_acquire) >> (page % 64)) & 1;
  }
  // Which pages have base copies: one bit per page. REQUIRES: count <= 64.
  std::uint64_t base_copies_in(format::PageNumber first, std::size_t count) const noexcept;
  void note_base_copies(format::PageNumber first, std::size_t count) noexcept;
  // Their memory stays as it is.
  void forget_base_copies(format::PageNumber first, std::size_t count) noexcept;

  // forget_base_copies(), and frees their memory.
  virtual void drop_base_copies(format::PageNumber first, std::size_t count) noexcept = 0;
  // Copies bytes in. Each page becomes visible as a whole. 0 or errno (ENOMEM, ENOSPC under a
  // memory limit). Async-signal-safe.
  virtual int write(format::PageNumber first, std::span<const std::byte> bytes) noexcept = 0;

 protected:
  // Maps the alias of `file`, which stays open while this object lives. `sharing`: MAP_SHARED or
  // MAP_PRIVATE. Throws Errc::out_of_memory.
  Backing(std::size_t capacity_bytes, int file, int sharing);

  // The number of base copies has changed by `pages`.
  virtual void count(std::int64_t pages) noexcept = 0;

 private:
  std::atomic<std::uint64_t>& word(format::PageNumber page) const noexcept {
    assert(page / 64 * sizeof(std::uint64_t) < present_.size());
    return reinterpret_cast<std::atomic<std::uint64_t>*>(present_.data())[page / 64];
  }

  const int file_;
  const std::size_t capacity_;
  std::byte* alias_ = nullptr;
  base::Reservation present_;  // one bit per page
};

}  // namespace vellum::region
