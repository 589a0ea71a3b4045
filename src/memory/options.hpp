// memory/options.hpp: the options of a region's memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/working_set.hpp"
#include "memory/paging/reclaim_schedule.hpp"
#include "memory/paging/sizes.hpp"
#include "memory/shared/shared_chunks.hpp"
#include "memory/statistics/counters.hpp"
#include "store/page_map/page_source.hpp"
#include "store/stream/image_file.hpp"

namespace vellum::region {

struct MemoryOptions {
  std::uint64_t capacity_bytes = 0;  // multiple of kPageBytes
  // Where the address space has no room for that, this much suffices. 0: it does not.
  std::uint64_t least_capacity_bytes = 0;
  std::uint64_t size_bytes = 0;  // multiple of kPageBytes
  bool writable = false;
  std::uint64_t wanted_address = 0;      // 0: anywhere
  bool address_required = false;         // otherwise only preferred
  bool over_reservation = false;         // maps over the caller's reservation and leaves one behind
  std::uint64_t memory_limit_bytes = 0;  // 0: shares the limit of the process
  std::size_t chunk_bytes = kDefaultChunkBytes;  // a power of two, kPageBytes..kMaxChunkPages pages

  Counters* counters = nullptr;  // outlive the memory; null: nothing is counted

  // Of paged memory.
  std::string spill_directory;  // empty: dirty pages stay in memory, whatever the limit
  bool huge_pages = false;
  bool fault_thread = false;       // of engine uffd: a thread serves faults, not signal handlers
  bool gives_back_copies = true;   // drops private copies that equal their base copies
  bool keeps_working_set = false;  // records which pages are used, and prefetches those of the last
  std::vector<format::PageRange> last_working_set;
  std::optional<ReclaimPolicy> reclaim_policy;  // none: ReclaimPolicy::of_process()
  // Empty: the steady clock, and a thread reclaims. With a clock, which allocates and throws
  // nothing, its owner calls PagedMemory::reclaimer().step() instead.
  std::function<std::chrono::steady_clock::time_point()> reclaim_clock;

  std::shared_ptr<SharedChunks> shared;  // of a version to read, in chunks of chunk_bytes

  // Of file memory: the file to map, and how to open the last commit in the store.
  std::shared_ptr<store::ImageFile> image;
  std::function<std::shared_ptr<store::PageSource>()> open_committed;
};

}  // namespace vellum::region
