// store/branch/checkpoint/checkpoint.hpp: the conversion of page writes into pack records and map entries.
//
// A checkpoint writes only the net effect of an epoch on each page: the newest full content with the
// later deltas applied, or all deltas composed into one. Chains stay short. A page whose chain has
// kMaxDeltaDepth deltas gets one delta against its base. The new run then repeats the entry of the
// base below that delta, which hides the deltas between them. That delta has the bytes stored to
// since the base. ChangedSpans records which these are, so the writer reads no base if it has seen
// the whole chain grow.
#pragma once

#include <cassert>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "format/wire/types.hpp"
#include "store/branch/checkpoint/changed_spans.hpp"
#include "store/branch/checkpoint/dedup.hpp"
#include "store/branch/checkpoint/depth_table.hpp"
#include "store/packs/encode/encoding_threads.hpp"
#include "store/packs/record/pack_writer.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

// Pages of the current commit that its caller has in memory.
//
// A checkpoint needs whole pages for which the commit has only deltas. Reading such a page from the
// packs takes a lookup, a decompression and the application of deltas. A region usually has the page
// in memory, as a base copy, so the checkpoint asks the region first. This is the only call from the
// store into the layer above.
//
// Implemented by the caller of Commit::finish(): a region, over its base copies. Called only while
// finish() runs. Threads: that of finish() and those of the store's pool, several at a time.
class CommittedPages {
 public:
  // Copies the page's content after the current commit to `out`, unless that is null. False: the
  // content is not in memory, or was evicted, and the store reads it itself.
  virtual bool copy_page(format::PageNumber page, std::byte* out) const = 0;

 protected:
  ~CommittedPages() = default;
};

class StoreDirectory;

inline constexpr std::uint8_t kMaxDeltaDepth = 16;

// Decides whether to compare a page with its base when the delta is too large by the bytes stored
// to. Only the comparison shows which of these bytes have changed back. Every page is compared while
// that pays. Otherwise one page in sixteen is, to notice when it pays again.
class RebaseSampler {
 public:
  bool worth_comparing(format::PageNumber page) const noexcept {
    return compared_ < kSample || small_ * kWorthOneOf >= compared_ || page % kStillOneOf == 0;
  }
  // `small`: the compared delta was small enough.
  void note_compared(bool small) noexcept {
    ++compared_;
    small_ += small ? 1 : 0;
    assert(small_ <= compared_);
    if (compared_ < 2 * kSample) return;
    compared_ /= 2;
    small_ /= 2;
  }

 private:
  static constexpr std::uint32_t kSample = 256, kWorthOneOf = 8, kStillOneOf = 16;
  std::uint32_t compared_ = 0, small_ = 0;  // of the last kSample to 2 * kSample
};

// The knowledge of a branch's writer about its pages' chains. REQUIRES: it has seen every checkpoint
// since it was created or cleared, and none that was given up.
struct KnownChains {
  DepthTable depths;
  ChangedSpans changed;
  RebaseSampler sampler;  // a guess, which clear() keeps
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

// Appends the entries of pages that the store holds already.
void append_found_entries(std::span<const PageRef> found, std::vector<format::MapEntry>& out);

// The environment of a checkpoint. All of it outlives the checkpoint.
struct CheckpointContext {
  StoreDirectory& store;
  PackWriter& packs;
  const format::Encoding& encoding;
  Dedup& dedup;
  KnownChains& chains;
  EncodingThreads& threads;
  // Returns the version below the deltas. Called when it is needed.
  std::function<const PageSource&()> last_checkpointed;
  const CommittedPages* committed = nullptr;  // pages as of the newest piece; null: none
};

// Appends records for the net effect of `pieces`, oldest first. Returns the entries, by page, newest
// of a chain first. `written` has the entries of records that the newest commit has appended
// already: they win over the pieces and are part of the result.
std::vector<format::MapEntry> checkpoint_pieces(const CheckpointContext& context,
                                                std::span<const PageWrites* const> pieces,
                                                std::vector<format::MapEntry> written);

}  // namespace vellum::store
