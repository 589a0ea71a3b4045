// store/branch/checkpoint/checkpoint.hpp: the conversion of page writes into pack records and map entries.
//
// Only the net effect of an epoch on each page is written: the newest full content with later
// deltas applied, or all deltas composed into one. Chains stay short: a page whose chain has
// reached kMaxDeltaDepth gets one delta against its base. The base then stands beside that delta in
// the new run and hides the deltas between. The cost is the bytes that were stored to since the
// base. The writer remembers which these are (ChangedSpans), so it reads no base where it has seen the
// chain grow.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "format/wire/types.hpp"
#include "store/branch/checkpoint/changed_spans.hpp"
#include "store/branch/checkpoint/committed_pages.hpp"
#include "store/branch/checkpoint/dedup.hpp"
#include "store/branch/checkpoint/depth_table.hpp"
#include "store/packs/encode/encoding_threads.hpp"
#include "store/packs/record/pack_writer.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

class StoreDirectory;

inline constexpr std::uint8_t kMaxDeltaDepth = 16;

// Pages whose delta against their base costs too much by the bytes that were stored to. Some of these
// may have changed back, which only a comparison with the base tells. It is made as long as it finds
// such pages; then for one page of some, which tells whether that has changed.
class RebaseSampler {
 public:
  bool worth_comparing(format::PageNumber page) const noexcept {
    return compared_ < kSample || cheap_ * kWorthOneOf >= compared_ || page % kStillOneOf == 0;
  }
  void note_compared(bool cheap) noexcept {
    ++compared_;
    cheap_ += cheap ? 1 : 0;
    if (compared_ < 2 * kSample) return;
    compared_ /= 2;
    cheap_ /= 2;
  }

 private:
  static constexpr std::uint32_t kSample = 256, kWorthOneOf = 8, kStillOneOf = 16;
  std::uint32_t compared_ = 0, cheap_ = 0;  // of the last kSample to 2 * kSample
};

// What a branch's writer knows of its pages' chains. REQUIRES: it has seen every checkpoint since it
// was made or cleared, and none that was given up.
struct KnownChains {
  DepthTable depths;
  ChangedSpans changed;
  RebaseSampler dear;  // a guess, which clear() keeps
  void clear() noexcept {
    depths.clear();
    changed.clear();
  }
};

// Appends the entries of a block of pages. Consecutive pages become one extent.
void append_block_entries(std::span<const format::PageNumber> pages,
                          const format::RecordRef& record, std::vector<format::MapEntry>& out);

// Appends each block as a record of its own, and its entries.
void append_blocks(std::span<const PageBlock* const> blocks, PackWriter& packs,
                   const format::Encoding& encoding, Dedup& dedup, EncodingThreads& threads,
                   std::vector<format::MapEntry>& out);

// Appends the entries of pages that were found in the store.
void append_found_entries(std::span<const PageRef> found, std::vector<format::MapEntry>& out);

// Appends records for the net effect of `pieces` (oldest first) and returns the entries, by page,
// newest of a chain first. `written` has the entries of records that the newest commit has already
// appended: they win over the pieces and are part of the result. `last_checkpointed` returns the
// version under the deltas; it is called when needed. `committed` is null or has pages as of the
// newest piece.
std::vector<format::MapEntry> checkpoint_pieces(
    StoreDirectory& store, PackWriter& packs, const format::Encoding& encoding, Dedup& dedup,
    std::span<const PageWrites* const> pieces, std::vector<format::MapEntry> written,
    const std::function<const PageSource&()>& last_checkpointed, const CommittedPages* committed,
    KnownChains& chains, EncodingThreads& threads);

}  // namespace vellum::store
