// memory/paged/huge_pages.hpp: versions in huge pages: one entry of the processor's translation
// table for 2 MiB.
//
// The kernel copies the pages of 2 MiB into one huge page of the memfd (MADV_COLLAPSE, Linux 6.1,
// madvise(2)). From then on the range stays in memory: removing a part of a huge page may leave
// zeros where a hole should be, and a fault would show them as content. Its chunks therefore stay
// held.
#pragma once

#include <cstddef>
#include <mutex>
#include <set>

#include "memory/paged/fill/paged_state.hpp"

namespace vellum::region {

class RangeLoader;

class HugePages {
 public:
  // The references outlive the object.
  HugePages(PagedState& state, RangeLoader& ranges) noexcept : state_(state), ranges_(ranges) {}
  ~HugePages() { state_.pager->end_keep(tables_.size() * kTableBytes); }
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

  // RegionMemory::make_huge().
  void collapse(PageNumber first, std::size_t count);

 private:
  int collapse_table(std::size_t table) noexcept;

  PagedState& state_;
  RangeLoader& ranges_;
  std::mutex mutex_;              // guards tables_
  std::set<std::size_t> tables_;  // numbers of tables, whose chunks are held
};

}  // namespace vellum::region
