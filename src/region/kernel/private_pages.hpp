// region/kernel/private_pages.hpp: which pages of a private file mapping have been written.
//
// A page that was written is a page of its own (anonymous); all others are the file's. Three ways
// to find them, the best one that the kernel has:
//
//  - written: asynchronous write protection (userfaultfd) marks those that collect() has seen, and
//    the kernel takes the mark off at the next write. Linux 6.7, where userfaultfd is permitted.
//    Costs a fault for each page that is read for the first time: the kernel does not map the pages
//    around it then.
//  - scan: every page that was ever written, each time. Linux 6.7.
//  - pagemap: the same from /proc/self/pagemap, 8 bytes a page of the whole range.
//
// A page that was written and has gone to swap is found like any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "format/types.hpp"
#include "region/kernel/kernel.hpp"
#include "region/kernel/write_tracker.hpp"

namespace vellum::region {

class PrivatePages {
 public:
  enum class Way { written, scan, pagemap };

  // `base`: a private file mapping of `bytes`. Takes the best way, but none better than `best`.
  PrivatePages(std::byte* base, std::size_t bytes, Way best = Way::written);
  ~PrivatePages();
  PrivatePages(const PrivatePages&) = delete;
  PrivatePages& operator=(const PrivatePages&) = delete;

  Way way() const noexcept { return way_; }
  // Appends, ascending, the pages of [first, end) that have been written: since the last call, or
  // ever. No write is lost: one that runs meanwhile is found now or next time. Throws Errc::io.
  void collect(format::PageNumber first, format::PageNumber end,
               std::vector<format::PageNumber>& out);

 private:
  bool try_way(Way way) noexcept;
  void collect_by_scan(format::PageNumber first, format::PageNumber end,
                       std::vector<format::PageNumber>& out);
  void collect_by_pagemap(format::PageNumber first, format::PageNumber end,
                          std::vector<format::PageNumber>& out);

  static constexpr std::size_t kMostRanges = 8192;
  const std::shared_ptr<WriteTracker> tracker_;
  std::byte* const base_;
  const std::size_t bytes_;
  Way way_ = Way::pagemap;
  std::vector<ScanRange> ranges_;
  std::vector<std::uint64_t> lines_;
};

}  // namespace vellum::region
