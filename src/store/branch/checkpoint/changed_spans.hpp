// store/branch/checkpoint/changed_spans.hpp: which bytes the deltas of a page change, for a branch's writer.
//
// A page at the end of its chain gets one delta against its base. To compare the two, the base would
// have to be read: a whole block is decompressed for one page. But where it is known which bytes the
// chain's deltas change, the page's content is all that the new delta takes. So the spans of the
// newest checkpoints' deltas are kept, as they were written. They cost memory alone, also where no page
// ever comes to the end of its chain.
//
// Threads: one call at a time; touch() beside touch().
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
  // Each is looked at for each page at the end of its chain.
  static constexpr std::size_t kMaxBatches = 512;

  // Where the spans take more than `max_bytes`, the oldest are forgotten.
  explicit ChangedSpans(std::size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // A checkpoint puts these deltas on the chains of their pages. `bases`, if there are any, are the
  // entries that the deltas stand on, one each: their chains begin with them.
  void add(format::DeltaBatch&& deltas, std::vector<format::MapEntry> bases = {});
  // Touches the bytes that the newest `deltas` of the page change. False: not all of them are known,
  // and some bytes may be missing. Fills `base` where the oldest of them came with its base.
  bool touch(format::PageNumber page, std::size_t deltas, format::DeltaComposer& changed,
             std::optional<format::MapEntry>& base) const;
  // Forgets everything, as is needed when a checkpoint is given up after add(): its delta may have
  // lacked bytes that the chain in the store changes.
  void clear() noexcept;

  // About what it takes.
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
