// memory/kernel/private_pages.hpp: the written pages of a private file mapping.
//
// A written page is private to the mapping (anonymous); all others are the file's. The best of
// three ways to find written pages that the kernel supports is used:
//
//  - written: asynchronous write protection (userfaultfd) arms the pages that collect() reports,
//    and the kernel disarms a page at its next write. Linux 6.7, where userfaultfd is permitted.
//    It costs a fault for each page that is read for the first time, because the kernel then does
//    not map the surrounding pages.
//  - scan: reports every page that was ever written, each time. Linux 6.7.
//  - pagemap: the same from /proc/self/pagemap, 8 bytes per page of the whole range.
//
// A written page that was swapped out is found like any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/wire/types.hpp"
#include "memory/kernel/kernel.hpp"
#include "memory/kernel/write_tracker.hpp"

namespace vellum::region {

class PrivatePages {
 public:
  enum class Way { written, scan, pagemap };

  // `base` is a private file mapping of `bytes` bytes. Uses the best way that is no better than
  // `best`.
  PrivatePages(std::byte* base, std::size_t bytes, Way best = Way::written);
  ~PrivatePages();
  PrivatePages(const PrivatePages&) = delete;
  PrivatePages& operator=(const PrivatePages&) = delete;

  Way way() const noexcept { return way_; }
  // Appends the pages of [first, end) that have been written: since the last call, or ever. No
  // write is lost: a concurrent write is found by this call or the next one. The pages ascend, and
  // each is there once, unless an earlier call failed: the next one also appends what that call had
  // found, of whatever range (sort_unique()). Throws Errc::io and std::bad_alloc; the pages appended by then count as reported.
  void collect(format::PageNumber first, format::PageNumber end,
               std::vector<format::PageNumber>& out);

 private:
  bool try_way(Way way) noexcept;
  void read_ranges(std::vector<format::PageNumber>& out);
  void collect_by_scan(format::PageNumber first, format::PageNumber end,
                       std::vector<format::PageNumber>& out);
  void collect_by_pagemap(format::PageNumber first, format::PageNumber end,
                          std::vector<format::PageNumber>& out);

  static constexpr std::size_t kMaxRanges = 8192;
  const std::shared_ptr<WriteTracker> tracker_;
  std::byte* const base_;
  const std::size_t bytes_;
  Way way_ = Way::pagemap;
  std::vector<ScanRange> ranges_;
  std::span<const ScanRange> unread_;  // of ranges_: found, and not yet reported
};

// One pass where the pages ascend already.
void sort_unique(std::vector<format::PageNumber>& pages);

}  // namespace vellum::region
