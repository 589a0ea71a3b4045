// store/page_map/changed_spans.hpp: the bytes that each page's chain of deltas changes, for a
// branch's writer.
//
// A page at the end of its chain gets one delta against its base. Where these bytes are known, that
// delta is made from the page's content alone. Otherwise the base has to be read and decompressed,
// a whole block for one page.
//
// Threads: one call at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/delta.hpp"
#include "format/types.hpp"

namespace vellum::store {

class ChangedSpans {
 public:
  // A delta has been put on the page's base or, with `depth` > 1, on the deltas above it. Without
  // the deltas before, those of a later depth are of no use and are not kept. A delta of depth 1
  // may be on a new base.
  void note(format::PageNumber page, std::uint8_t depth, std::span<const format::DeltaSpan> spans);
  // The spans of all deltas of the page's chain, in the order in which they came; they overlap.
  // Empty: not known. REQUIRES: the chain has deltas, and note() was told of the newest.
  std::span<const format::DeltaSpan> of(format::PageNumber page) const noexcept;
  // The entry under the deltas of a page of which of() is not empty; null: not known.
  const format::MapEntry* base_of(format::PageNumber page) const noexcept;
  void note_base(const format::MapEntry& base);
  // Forgets everything, as is needed when a checkpoint is given up after note().
  void clear() noexcept;

 private:
  // 16 Mi spans; then it starts anew.
  static constexpr std::size_t kMaxSpans = (64u << 20) / sizeof(format::DeltaSpan);

  struct Chain {
    std::vector<format::DeltaSpan> spans;
    std::optional<format::MapEntry> base;
  };

  std::unordered_map<format::PageNumber, Chain> pages_;
  std::size_t spans_ = 0;
};

}  // namespace vellum::store
