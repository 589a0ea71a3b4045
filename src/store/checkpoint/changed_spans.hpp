// store/checkpoint/changed_spans.hpp: the bytes that the deltas of a page change, for pages whose chains
// have been full.
//
// A page at the end of its chain gets one delta against its base. The first time, the base has to
// be read for the comparison: a whole block is decompressed for one page. From then on it is known
// which bytes differ and which are stored to, and the page's content is all that the next such
// delta takes. Pages that change less often cost nothing here.
//
// Threads: one call at a time; find() beside find().
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

  struct Chain {
    std::vector<format::DeltaSpan> spans;  // of all deltas, in the order in which they came
    format::MapEntry base;                 // the entry under these deltas
  };

  // Forgets everything when it would take more than `max_bytes`, and starts anew.
  explicit ChangedSpans(std::size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // The page has one delta, with `spans`, against `base`.
  void begin(const format::MapEntry& base, std::span<const format::DeltaSpan> spans);
  // Another delta is put on the deltas of a page. Of a page that is not known, nothing is kept.
  void extend(format::PageNumber page, std::span<const format::DeltaSpan> spans);
  // Pages that get a new base have no deltas. Takes in the entries that a checkpoint writes: by
  // page, newest of a chain first.
  void update(std::span<const format::MapEntry> entries);
  // Forgets everything, as is needed when a checkpoint is given up after begin() or extend(): its
  // delta may have lacked bytes that the chain in the store changes.
  void clear() noexcept;

  // The page's chain; its spans overlap. Null: not known. Valid until a call changes something.
  const Chain* find(format::PageNumber page) const noexcept;

  // About what it takes.
  std::size_t bytes() const noexcept;

 private:
  // A node with its bucket, and the vector's block.
  static constexpr std::size_t kBytesPerPage = 144;

  void forget(format::PageNumber page) noexcept;
  void stay_within(std::size_t more_bytes) noexcept;

  std::size_t max_bytes_;
  std::unordered_map<format::PageNumber, Chain> chains_;
  std::size_t span_count_ = 0;
};

}  // namespace vellum::store
