// store/branch/checkpoint/changed_spans.hpp: the bytes that the deltas of a page change, for a branch's writer.
//
// A page at the end of its chain gets one delta against its base. A comparison of the two would
// decompress a whole block for one page. If the bytes that the chain's deltas change are known, the
// page's content suffices. The writer therefore keeps the spans of the newest checkpoints' deltas in
// memory, at no other cost.
//
// Threads: one call at a time, except touch() concurrently with touch().
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "format/records/delta.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

class ChangedSpans {
 public:
  static constexpr std::size_t kMaxBytes = 64u << 20;
  // Each is searched for each page at the end of its chain.
  static constexpr std::size_t kMaxBatches = 512;

  // If the spans exceed `max_bytes`, the oldest are dropped.
  explicit ChangedSpans(std::size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // A checkpoint adds these deltas to the chains of their pages. `bases`, if not empty, has the base of
  // each delta: the chains then start with it.
  void add(format::DeltaBatch&& deltas, std::vector<format::MapEntry> bases = {});
  // Touches the bytes that the newest `deltas` of the page change. False: not all of these deltas are
  // known, and some bytes may be missing. Fills `base` if the oldest of them was added with its base.
  bool touch(format::PageNumber page, std::size_t deltas, format::DeltaComposer& changed,
             std::optional<format::MapEntry>& base) const;
  // Drops everything. Needed when a checkpoint is given up after add(): its delta may have lacked
  // bytes that the chain in the store changes.
  void clear() noexcept;

  // Approximate memory in use.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  // The deltas of one call, by page.
  struct Batch {
    format::PageNumber first_page, last_page;
    format::DeltaBatch deltas;            // without their bytes
    std::vector<format::MapEntry> bases;  // none, or one for each page
    std::size_t bytes() const noexcept;
  };

  std::size_t max_bytes_;
  std::deque<Batch> batches_;  // oldest first
  std::size_t bytes_ = 0;
};

}  // namespace vellum::store
