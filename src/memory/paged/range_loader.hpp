// memory/paged/range_loader.hpp: loads page ranges that the program or a commit needs.
//
// Large ranges are loaded in units of 2 MiB, by all processors. Of a version at a remote, all
// missing pieces are requested before, so that one wait for the network serves them all.
//
// Any thread, but not the fault handler. A `bool` that is false leaves the reason in `failure`.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "format/working_set.hpp"
#include "memory/paged/fill/paged_state.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::region {

class ChunkFiller;
class VersionSharing;

class RangeLoader {
 public:
  // The references outlive the object; the constructor uses none of them.
  RangeLoader(PagedState& state, ChunkFiller& filler, VersionSharing& sharing) noexcept
      : state_(state), filler_(filler), sharing_(sharing) {}
  RangeLoader(const RangeLoader&) = delete;
  RangeLoader& operator=(const RangeLoader&) = delete;

  // Fills and maps all chunks of the range.
  bool load(PageNumber first, std::size_t count, store::ReadFailure& failure) noexcept;
  bool load(std::span<const format::PageRange> ranges, store::ReadFailure& failure);

 private:
  bool load_all(PageNumber first, std::size_t count, store::ReadFailure& failure) noexcept;
  bool load_chunks(PageNumber first, std::size_t count, store::ReadFailure& failure) noexcept;
  bool load_ranges(std::span<const format::PageRange> ranges, store::ReadFailure& failure);
  bool load_units(std::span<const format::PageRange> units, store::ReadFailure& failure);

  static bool is_worth_threads(std::size_t pages) noexcept;
  static std::vector<format::PageRange> units_of(std::span<const format::PageRange> ranges);
  std::size_t missing_pages(std::span<const format::PageRange> ranges) const noexcept;
  std::vector<format::PageRange> missing_in(std::span<const format::PageRange> units) const;
  bool may_be_remote() const noexcept;
  std::shared_ptr<const void> fetch_early(std::span<const format::PageRange> units) const;

  PagedState& state_;
  ChunkFiller& filler_;
  VersionSharing& sharing_;
};

}  // namespace vellum::region
