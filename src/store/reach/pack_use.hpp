// store/reach/pack_use.hpp: what of each pack is needed, and what could be given back. For gc and
// stat.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "store/pack/pack_extents.hpp"
#include "store/reach/census.hpp"
#include "store/reach/roots.hpp"

namespace vellum::store {

inline constexpr std::uint64_t kHoleBytes = 4096;  // what a file system can give back, at least

struct PackUse {
  std::uint64_t pack = 0;
  std::uint64_t file_bytes = 0, allocated_bytes = 0;
  std::uint64_t needed_bytes = 0;    // of records, headers, index
  std::uint64_t freeable_bytes = 0;  // on the medium, in whole blocks
  bool at_home = true;               // else in an archive
  bool removable = false;            // nothing names the pack: all of it may go
  std::vector<Extent> holes;         // whole blocks that nothing needs, punched already or not
};

// What versions need of a pack.
struct PackNeeds {
  struct Record {
    std::uint64_t offset_bytes = 0;  // of references
    Census::RecordId id = 0;
  };
  std::vector<Record> records;  // ascending
  std::vector<Extent> copies;   // of versions, where they lie; ascending
};
// By pack; only packs of which something is needed. REQUIRES: mark_roots.
using Needs = std::map<std::uint64_t, PackNeeds>;
Needs needs_of_packs(StoreCore& store, const Roots& roots, const Census& census);

// What each record takes that is marked in the census; 0 for the others.
std::vector<std::uint64_t> record_bytes(StoreCore& store, Census& census);
// Called between two versions or packs, where it may throw to end the work.
using BetweenSteps = std::function<void()>;
// Marks what the versions need.
void mark_roots(StoreCore& store, const Roots& roots, Census& census,
                const BetweenSteps& between = nullptr);
// Of every pack in `roots`, by pack. The census learns what records take.
std::vector<PackUse> use_of_packs(StoreCore& store, const Roots& roots, Census& census,
                                  const Needs& needs, const BetweenSteps& between = nullptr);

}  // namespace vellum::store
