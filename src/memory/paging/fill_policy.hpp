// memory/paging/fill_policy.hpp: how much a fault in a missing chunk fills, and what is read ahead
// of it.
//
// Pure: no system call, no clock; it allocates nothing and takes no lock. Any context, any number
// of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/paging/bulk_load.hpp"
#include "memory/paging/chunk_table.hpp"
#include "memory/paging/pager.hpp"
#include "memory/paging/partial_fill_policy.hpp"
#include "memory/paging/read_streams.hpp"

namespace vellum::region {

// whole: the chunk. part: the page, or its chunk (ChunkFiller::fill_part). unit: the chunk's unit
// of 2 MiB, which the caller has taken (BulkLoad). shared: the chunk; of its unit, the chunks that
// other readers have filled.
enum class FillScope { whole, part, unit, shared };

class FillPolicy {
 public:
  // Constant properties of the memory.
  struct FillSettings {
    bool is_shared = false;       // MemoryOptions::shared
    bool may_fill_parts = false;  // the engine and the options permit absent pages
  };
  // The references outlive the policy.
  FillPolicy(const ChunkTable& chunks, ReadStreams& streams, PartialFillPolicy& partial_fills,
             const Pager& pager, FillSettings settings) noexcept
      : chunks_(chunks),
        streams_(streams),
        partial_fills_(partial_fills),
        pager_(pager),
        settings_(settings) {}

  struct MissingChunk {
    std::size_t index = 0;
    bool is_write = false;
    bool has_thread = false;  // the memory has joined the read-ahead thread
    std::size_t max_ahead = 0;
    BulkLoad* load = nullptr;  // null: this memory is never bulk loaded
  };
  struct FillDecision {
    FillScope scope = FillScope::whole;
    ReadStreams::Window ahead;  // chunks that are worth reading ahead
    bool wakes_thread = false;  // there is work for the read-ahead thread
  };
  // Decides for one fault, and notes it. `take_unit(index)` takes the chunk's unit of a bulk load
  // in progress; false: it is not available.
  template <typename TakeUnit>
  FillDecision decide(const MissingChunk& chunk, const TakeUnit& take_unit) noexcept {
    FillDecision out;
    const Advice advice = chunks_[chunk.index].advice.load(std::memory_order_relaxed);
    const bool follows_reads = chunk.has_thread && advice != Advice::random;
    if (follows_reads) {
      if (chunk.load != nullptr) out.wakes_thread = chunk.load->note_fault();
      out.ahead = streams_.note_fault({chunk.index, advice == Advice::sequential, chunk.is_write},
                                      chunk.max_ahead);
      out.wakes_thread |= !out.ahead.empty();
    }
    if (settings_.is_shared) {
      if (follows_reads) out.scope = FillScope::shared;
    } else if (follows_reads && chunk.load != nullptr && take_unit(chunk.index)) {
      out.scope = FillScope::unit;
    } else if (may_fill_part(chunk.index, advice) && partial_fills_.choose_partial()) {
      out.scope = FillScope::part;
    }
    return out;
  }

 private:
  static constexpr std::int64_t kShareFree = 4;  // of the limit: with more, memory is not short

  // Whether memory is short, and no reader in order has accessed the chunk.
  bool may_fill_part(std::size_t index, Advice advice) const noexcept {
    if (!settings_.may_fill_parts) return false;
    if (advice == Advice::sequential || streams_.follows(index)) return false;
    const auto limit = static_cast<std::int64_t>(pager_.limit_bytes() / kPageBytes);
    return pager_.used_pages() >= limit - limit / kShareFree;
  }

  const ChunkTable& chunks_;
  ReadStreams& streams_;
  PartialFillPolicy& partial_fills_;
  const Pager& pager_;
  const FillSettings settings_;
};

}  // namespace vellum::region
