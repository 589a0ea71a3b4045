// memory/options.hpp: what a region's memory is made from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/working_set.hpp"
#include "memory/paging/sizes.hpp"
#include "memory/shared/shared_chunks.hpp"
#include "memory/statistics/counters.hpp"
#include "store/page_map/page_source.hpp"
#include "store/stream/image_file.hpp"

namespace vellum::region {

struct MemoryOptions {
  std::uint64_t capacity_bytes = 0;  // multiple of kPageBytes
  // Where there is no room for that, less will do, down to here. 0: it will not.
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
  bool fault_thread = false;      // of engine uffd: faults are answered by a thread, not by signals
  bool gives_back_copies = true;  // private copies that equal their base copies
  bool keeps_working_set = false;  // remembers which pages are used, and brings in the last use's
  std::vector<format::PageRange> last_working_set;

  std::shared_ptr<SharedChunks> shared;  // of a version to read, in chunks of chunk_bytes

  // Of file memory: the file to map, and the last commit as the store has it.
  std::shared_ptr<store::ImageFile> image;
  std::function<std::shared_ptr<store::PageSource>()> open_committed;
};

}  // namespace vellum::region
