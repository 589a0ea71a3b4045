// store/branch/changed_spans.hpp: the bytes that each page's chain of deltas changes, for a
// branch's writer.
//
// A page at the end of its chain gets one delta against its base. Where these bytes are known, the
// page's content now is all that it takes. Otherwise the base has to be read for the comparison: a
// whole block is decompressed for one page.
//
// Threads: one call at a time; of() and base_of() beside each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/delta.hpp"
#include "format/types.hpp"

namespace vellum::store {

class ChangedSpans {
 public:
  static constexpr std::size_t kMaxBytes = 64u << 20;

  // Forgets everything when it would take more than `max_bytes`, and starts anew.
  explicit ChangedSpans(std::size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // A delta is put on the page's base or, with `depth` > 1, on the deltas above it. Without the
  // deltas before, those of a later depth are of no use and are not kept. A delta of depth 1 may be
  // on a new base.
  void note(format::PageNumber page, std::uint8_t depth, std::span<const format::DeltaSpan> spans);
  // The entry under the deltas of a page; kept where of() is not empty.
  void note_base(const format::MapEntry& base);
  // Pages that get a new base have no deltas. Takes in the entries that a checkpoint writes: by
  // page, newest of a chain first.
  void update(std::span<const format::MapEntry> entries);

  // Forgets everything, as is needed when a checkpoint is given up after note(): its delta may have
  // lacked bytes that the chain in the store changes.
  void clear() noexcept;

  // The spans of all deltas of the page's chain, in the order in which they came; they overlap.
  // Empty: not known. REQUIRES: the chain has deltas, and note() was told of the newest.
  std::span<const format::DeltaSpan> of(format::PageNumber page) const noexcept;
  // The entry under the deltas of a page of which of() is not empty; null: not known.
  const format::MapEntry* base_of(format::PageNumber page) const noexcept;

  // About what it takes.
  std::size_t bytes() const noexcept;

 private:
  // A node with its bucket, and the vector's block.
  static constexpr std::size_t kBytesPerPage = 96, kBytesPerBase = 88;

  void forget(format::PageNumber page) noexcept;
  void stay_within(std::size_t more_bytes) noexcept;

  std::size_t max_bytes_;
  std::unordered_map<format::PageNumber, std::vector<format::DeltaSpan>> spans_;
  std::unordered_map<format::PageNumber, format::MapEntry> bases_;
  std::size_t span_count_ = 0;
};

}  // namespace vellum::store
