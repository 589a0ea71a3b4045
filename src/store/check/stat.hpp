// store/check/stat.hpp: the distribution of a store's bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/catalog/store_core.hpp"

namespace vellum::store {

struct VersionStat {
  std::string name;
  bool is_branch = false;
  std::uint64_t logical_bytes = 0;  // region size
  std::uint64_t nonzero_bytes = 0;  // pages that have an entry, times kPageBytes
  std::uint64_t added_bytes = 0;    // pack bytes appended for it since its parent
  std::uint64_t unique_bytes = 0;   // of records that no other version needs
  std::uint64_t shared_bytes = 0;   // of the other records that it needs
};

struct StoreStat {
  std::uint64_t pack_bytes = 0;  // file sizes
  std::uint64_t journal_bytes = 0, ref_bytes = 0;
  std::uint64_t allocated_bytes = 0;  // on the medium (st_blocks), of all files
  std::uint64_t packs = 0;
  // The packs and pack_bytes in archives; and copies in caches, which count nowhere else.
  std::uint64_t archive_packs = 0, archive_bytes = 0;
  std::uint64_t cache_copies = 0, cache_bytes = 0;
  std::uint64_t pack_needed_bytes = 0, pack_freeable_bytes = 0;  // see store/reach/pack_use.hpp
  std::uint64_t full_copy_bytes =
      0;  // sum of nonzero_bytes over all versions: the size of sparse full copies
  std::vector<VersionStat> versions;
};

StoreStat stat_store(StoreCore& store);

}  // namespace vellum::store
