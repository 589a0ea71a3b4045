// store/packs/record/record_cache.hpp: decoded records, shared by all open versions of a store.
//
// The cache has a fixed number of frames in reserved memory, each with its own HandlerLock. A
// page-in holds one frame at a time, page-ins of different records run concurrently, and nothing is
// allocated after construction.
//
// Threads: get() from any thread, and in the fault handler.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/memory/reserve.hpp"
#include "base/threads/handler_lock.hpp"
#include "format/records/delta.hpp"
#include "format/records/page_map.hpp"
#include "format/records/record.hpp"
#include "format/wire/superblock.hpp"
#include "store/packs/pack_set.hpp"

namespace vellum::store {

// The reason why a page cannot be read. Plain data: the fault handler returns it.
struct ReadFailure {
  const char* reason = nullptr;  // static text
  format::RecordRef record;      // its place, if a record is to blame
  format::PageNumber page = 0;
  int os_errno = 0;                  // of the operating system, if it is to blame
  const base::File* file = nullptr;  // of the record, if known; outlives the version
};

// The largest raw size of a record of pages or deltas in a store of this encoding. The largest
// frames have this capacity.
constexpr std::size_t max_data_raw_bytes(const format::Encoding& encoding,
                                         format::RecordType type) noexcept {
  return format::holds_pages(type) ? format::max_block_bytes(encoding)
                                   : format::kMaxDeltaBatchRawBytes;
}

// Pages of a record, from `slot` on, that are decoded without a frame: the whole record or, with
// `alone`, a small part of a record that is unlikely to be needed again soon. The processor's cache
// then need not evict a frame for them. REQUIRES: `out` is not region memory.
struct DirectPages {
  std::span<std::byte> out;
  std::uint32_t slot = 0;
  bool alone = false;
};

// A record that a reader needs: of type pages (based pages included), deltas or map_block.
struct RecordRequest {
  format::RecordRef ref;
  format::RecordType type = format::RecordType::pages;
  // A record that no frame holds may be decoded to there; the view then stays empty.
  DirectPages direct = {};
  // Where a record is in several forms, one that has these slots is taken. If no form has them, the
  // view reports it.
  format::SlotRange slots = {};
};

class RecordCache {
 public:
  RecordCache(PackSet& packs, const format::RecordSeal& seal, const format::Encoding& encoding,
              std::size_t budget_bytes);
  ~RecordCache();

  // A decoded record, locked until the view is destroyed. REQUIRES: one view per thread at a time;
  // the accessors need a view that is not empty.
  class View {
   public:
    View() = default;
    ~View() { release(); }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    void release() noexcept;
    bool empty() const noexcept { return frame_ == nullptr; }
    const format::RecordHeader& header() const noexcept;
    // Whether the record has all these slots. The content of a slot that gc freed is undefined.
    bool holds(std::uint32_t slot, std::uint64_t count = 1) const noexcept;
    std::span<const std::byte> raw() const noexcept;                  // type pages, deltas
    std::span<const format::DeltaIndexLine> deltas() const noexcept;  // type deltas
    std::span<const format::MapEntry> entries() const noexcept;       // type map_block

   private:
    friend class RecordCache;
    struct CacheFrame* frame_ = nullptr;
  };

  // Loads the record unless a frame holds it: reads, verifies, decompresses and parses it. False:
  // `failure` has the reason. REQUIRES: the PackSet has opened the pack of `ref` (otherwise it
  // fails with a reason); the calling thread has no other view.
  bool get(const RecordRequest& request, View& view, ReadFailure& failure) noexcept;

 private:
  struct Impl;
  struct Load;
  Impl* impl_;
};

}  // namespace vellum::store
