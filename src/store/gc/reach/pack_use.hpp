// store/gc/reach/pack_use.hpp: the needed and the freeable bytes of each pack, for gc and stat.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "store/gc/reach/live_set.hpp"
#include "store/gc/reach/roots.hpp"
#include "store/packs/record/pack_extents.hpp"

namespace vellum::store {

inline constexpr std::uint64_t kHoleBytes = 4096;  // the smallest hole that frees space

struct PackUse {
  std::uint64_t pack = 0;
  std::uint64_t file_bytes = 0, allocated_bytes = 0;
  std::uint64_t needed_bytes = 0;    // of records, headers, index
  std::uint64_t freeable_bytes = 0;  // on the medium, in whole blocks
  bool at_home = true;               // else in an archive
  bool removable = false;            // no version names the pack: it may be removed
  std::vector<Extent> holes;         // whole blocks that are not needed, punched already or not
};

// The parts of a pack that versions need.
struct PackNeeds {
  struct Record {
    std::uint64_t offset_bytes = 0;  // as in references
    LiveSet::RecordId id = 0;
  };
  std::vector<Record> records;  // ascending
  std::vector<Extent> copies;   // of versions, in the file; ascending
};
// By pack; only packs with needed parts. REQUIRES: reach_roots().
using Needs = std::map<std::uint64_t, PackNeeds>;
Needs needs_of_packs(StoreDirectory& store, const Roots& roots, const LiveSet& live_set);

// The size of each record that the live set has reached; 0 for the others.
std::vector<std::uint64_t> record_bytes(StoreDirectory& store, LiveSet& live_set);
// Called between two versions or packs. It may throw to end the work.
using BetweenSteps = std::function<void()>;
// Reaches the records that the versions need.
void reach_roots(StoreDirectory& store, const Roots& roots, LiveSet& live_set,
                 const BetweenSteps& between = nullptr);
// The use of every pack in `roots`, by pack. Records the sizes of records in the live set.
std::vector<PackUse> use_of_packs(StoreDirectory& store, const Roots& roots, LiveSet& live_set,
                                  const Needs& needs, const BetweenSteps& between = nullptr);

}  // namespace vellum::store
