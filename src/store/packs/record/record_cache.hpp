// store/packs/record/record_cache.hpp: decoded records, shared by every version that is open on a store.
//
// The cache has a fixed number of frames in reserved memory, each with its own HandlerLock. A
// page-in holds one frame at a time, page-ins of different records run side by side, and nothing is
// allocated after construction.
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

// Why a page could not be read. Plain data: it travels out of the fault handler.
struct ReadFailure {
  const char* reason = nullptr;  // static text
  format::RecordRef record;      // the place, when a record is to blame
  format::PageNumber page = 0;
  int os_errno = 0;                  // from the operating system, when it is to blame
  const base::File* file = nullptr;  // of the record, where that is known; outlives the version
};

// The most that a record of pages or deltas may unpack to in a store of this encoding. Frames have
// room for that much.
constexpr std::size_t max_data_raw_bytes(const format::Encoding& encoding,
                                         format::RecordType type) noexcept {
  return format::holds_pages(type) ? format::max_block_bytes(encoding)
                                   : format::kMaxDeltaBatchRawBytes;
}

// Pages of a record of pages, from `slot` on, that are taken without a frame: all of the record, or
// a small part of one that is unlikely to be needed again soon (`alone`). A frame would have to leave
// the processor's cache for them. `out` is no region memory.
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
  RecordCache(PackSet& packs, std::uint64_t seed, const format::Encoding& encoding,
              std::size_t budget_bytes);
  ~RecordCache();

  // A decoded record, locked until the view dies. Only one view per thread at a time.
  class View {
   public:
    View() = default;
    ~View() { release(); }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    void release() noexcept;
    bool empty() const noexcept { return frame_ == nullptr; }
    const format::RecordHeader& header() const noexcept;
    // Whether none of these slots was given back; the content of a slot that was is meaningless.
    bool holds(std::uint32_t slot, std::uint64_t count = 1) const noexcept;
    std::span<const std::byte> raw() const noexcept;                  // type pages, deltas
    std::span<const format::DeltaIndexLine> deltas() const noexcept;  // type deltas
    std::span<const format::MapEntry> entries() const noexcept;       // type map_block

   private:
    friend class RecordCache;
    struct CacheFrame* frame_ = nullptr;
  };

  // Loads the record unless a frame holds it: reads, verifies, decompresses and parses it. False:
  // `failure` has the reason. REQUIRES: the PackSet has opened the pack of `ref` (otherwise it fails
  // with a reason); the calling thread has no other view.
  bool get(const RecordRequest& request, View& view, ReadFailure& failure) noexcept;

 private:
  struct Impl;
  struct Load;
  Impl* impl_;
};

}  // namespace vellum::store
