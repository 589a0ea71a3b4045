// memory/paged/fill/version_sharing.hpp: pages of a version that its readers share
// (MemoryOptions::shared).
//
// The range maps the shared file, but shows no page of it before this region has checked the chunk:
// engine uffd gets a fault for every page that is not mapped, and engine sigsegv keeps its pages
// closed. The first reader that accesses a chunk fills it for all. A chunk that cannot be shared is
// filled with pages of this process only.
//
// Accounting: the reader that fills a chunk counts its pages until the region closes, since nothing
// that this region does would free them. It therefore stops filling at half of the memory limit,
// and the rest of the version is not shared. Chunks that others have filled count while they are
// mapped, and are evicted by being unmapped.
//
// Signal context: all of it. REQUIRES: MemoryOptions::shared is set, except for the constructor and
// counted_pages().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/memory/reserve.hpp"
#include "memory/paged/fill/paged_state.hpp"
#include "memory/shared/shared_chunks.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::region {

class ChunkFiller;
class Prefetcher;

class VersionSharing {
 public:
  // The references outlive the object; the constructor uses none but the state. Throws
  // Errc::out_of_memory.
  VersionSharing(PagedState& state, EngineHooks& engine, ChunkFiller& filler,
                 Prefetcher& prefetcher);
  VersionSharing(const VersionSharing&) = delete;
  VersionSharing& operator=(const VersionSharing&) = delete;

  // Fills a chunk and ends its claim. False: `failure` has the reason. REQUIRES: claimed.
  bool fill(std::size_t index, std::size_t pages, store::ReadFailure& failure,
            ChunkMapping mapping) noexcept;
  // Maps those of the missing chunks that are full, in as few calls as possible: a fault for each
  // would take longer than the mapping.
  void map_full(std::size_t index, std::size_t count) noexcept;
  // Loads adjacent chunks: maps full ones at once, and fills the rest, unless another reader is
  // filling some of it, which fills all. One reader thus decodes the records that several of them
  // need.
  void load(std::size_t index, std::size_t count) noexcept;
  // Loads the units of 2 MiB that are wholly in the range.
  void load_range(PageNumber first, std::size_t count) noexcept;

  // Whether a chunk that is present consists of zeros.
  bool is_of_zeros(std::size_t index) const noexcept {
    return origin(index).load(std::memory_order_relaxed) == ChunkOrigin::zeros;
  }
  // EngineHooks::resolve_present() of a chunk that is not of zeros: maps it again. 0 or errno.
  int show_again(std::size_t index) noexcept;
  // Ends the claim. Returns how many pages no longer count. REQUIRES: claimed.
  std::size_t evict(std::size_t index) noexcept;

  struct CountedPages {
    std::int64_t shared = 0;    // filled by this region, or mapped
    std::int64_t unshared = 0;  // of unshared chunks, without those that have base copies
  };
  CountedPages counted_pages() const noexcept {
    return {shared_pages_.load(), unshared_pages_.load()};
  }

 private:
  // The origin of a chunk that is present. filled_here: this region has filled it in the shared
  // file; found: another one has. unshared: it could not be shared.
  enum class ChunkOrigin : std::uint8_t { zeros, filled_here, found, unshared };
  std::atomic<ChunkOrigin>& origin(std::size_t index) const noexcept {
    return reinterpret_cast<std::atomic<ChunkOrigin>*>(origins_.data())[index];
  }
  SharedChunks& shared() const noexcept { return *state_.options.shared; }

  enum class SharedWait { full, wrong, to_fill, late };
  SharedWait await(std::size_t index) noexcept;
  bool may_fill() const noexcept;
  int show(std::size_t index, std::size_t count, ChunkOrigin from, ChunkMapping mapping) noexcept;
  void map_run(std::size_t index, std::size_t count) noexcept;
  bool take_out(std::size_t index) noexcept;
  int place_unshared(std::size_t index, std::size_t pages, const std::byte* content) noexcept;
  void add_counted(ChunkOrigin from, std::int64_t pages) noexcept;

  PagedState& state_;
  EngineHooks& engine_;
  ChunkFiller& filler_;
  Prefetcher& prefetcher_;
  base::Reservation origins_;           // one ChunkOrigin per chunk, of a shared version
  std::atomic<bool> impatient_{false};  // the last wait for another reader timed out
  std::atomic<std::int64_t> shared_pages_{0}, unshared_pages_{0};
};

}  // namespace vellum::region
