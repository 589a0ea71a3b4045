#include "memory/kernel/private_pages.hpp"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "memory/kernel/support.hpp"

namespace vellum::region {

using format::kPageBytes;
using format::PageNumber;

namespace {

[[noreturn]] void refuse(const char* what) {
  fail(Errc::io, "cannot find the written pages: {}: {}", what, std::strerror(errno));
}

}  // namespace

PrivatePages::PrivatePages(std::byte* base, std::size_t bytes, Way best)
    : tracker_(WriteTracker::of_process()), base_(base), bytes_(bytes) {
  for (const Way way : {Way::written, Way::scan}) {
    if (way < best || !try_way(way)) continue;
    way_ = way;
    return;
  }
}

PrivatePages::~PrivatePages() {
  if (way_ == Way::written) tracker_->remove(base_, bytes_);
}

bool PrivatePages::try_way(Way way) noexcept {
  return kernel_support().page_scan == 0 && (way == Way::scan || tracker_->add(base_, bytes_));
}

void PrivatePages::collect(PageNumber first, PageNumber end, std::vector<PageNumber>& out) {
  assert(first <= end && end * kPageBytes <= bytes_);
  if (way_ == Way::pagemap) {
    collect_by_pagemap(first, end, out);
  } else {
    collect_by_scan(first, end, out);
  }
}

// The kernel has armed the pages of the ranges, so ranges stay unread until all their pages are in
// `out`. A page may be in it twice then.
void PrivatePages::read_ranges(std::vector<PageNumber>& out) {
  const auto base = reinterpret_cast<std::uintptr_t>(base_);
  for (; !unread_.empty(); unread_ = unread_.subspan(1)) {
    const ScanRange& range = unread_.front();
    for (auto page = range.begin; page < range.end; page += kPageBytes)
      out.push_back((page - base) / kPageBytes);
  }
}

void PrivatePages::collect_by_scan(PageNumber first, PageNumber end, std::vector<PageNumber>& out) {
  if (way_ != Way::written) unread_ = {};  // nothing is armed: they are found again
  read_ranges(out);
  std::byte* const stop = base_ + end * kPageBytes;
  // At most one range for each page: each of thousands of small files needs few.
  const std::size_t wanted = std::min<std::size_t>(kMaxRanges, end - first);
  if (ranges_.size() < wanted) ranges_.resize(wanted);
  for (std::byte* at = base_ + first * kPageBytes; at < stop;) {
    std::byte* resume = stop;
    const long found =
        scan_private(tracker_->pagemap(), at, stop, way_ == Way::written, ranges_, resume);
    if (found < 0) refuse("PAGEMAP_SCAN");
    unread_ = std::span(ranges_).first(static_cast<std::size_t>(found));
    read_ranges(out);
    at = resume;
  }
}

void sort_unique(std::vector<PageNumber>& pages) {
  if (std::adjacent_find(pages.begin(), pages.end(), std::greater_equal<>()) == pages.end()) return;
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
}

void PrivatePages::collect_by_pagemap(PageNumber first, PageNumber end,
                                      std::vector<PageNumber>& out) {
  constexpr std::size_t kLines = 64u << 10;
  // Memory only for the pages of the mapping, and only during the call: thousands of small files
  // may be mapped.
  std::vector<std::uint64_t> lines(std::min<std::size_t>(kLines, end - first));
  const auto base = reinterpret_cast<std::uintptr_t>(base_) / kPageBytes;
  for (PageNumber page = first; page < end;) {
    const std::size_t wanted =
        std::min<std::size_t>(lines.size(), end - page) * sizeof(std::uint64_t);
    const ssize_t got = pread(tracker_->pagemap(), lines.data(), wanted,
                              static_cast<off_t>((base + page) * sizeof(std::uint64_t)));
    if (got < 0 && errno == EINTR) continue;
    if (got < static_cast<ssize_t>(sizeof(std::uint64_t))) refuse("/proc/self/pagemap");
    const std::size_t n = static_cast<std::size_t>(got) / sizeof(std::uint64_t);
    for (std::size_t i = 0; i < n; ++i) {
      if (is_private_line(lines[i])) out.push_back(page + i);
    }
    page += n;
  }
}

}  // namespace vellum::region
