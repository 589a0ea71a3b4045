// store/reach/pack_heat.hpp: which packs are likely to be read soon: those that new versions need.
#pragma once

#include <vector>

#include "store/reach/roots.hpp"

namespace vellum::store {

struct PackHeat {
  // Of a pack that no version needs, or only one that has no name.
  static constexpr std::uint32_t kCold = UINT32_MAX;

  std::uint64_t pack = 0;
  std::uint64_t bytes = 0;     // on the medium
  bool settled = false;        // no writer will write it any more
  std::uint32_t rank = kCold;  // 0: a branch's head needs it; n: the nth newest snapshot, no newer
  std::uint64_t records = 0;   // of it that this version needs, or the heads together
  // The same of versions that name it: opening them opens it, needed or not.
  std::uint32_t named_rank = kCold;
};

// Of every pack in `roots`, the hottest first. Costs what differs from version to version
// (store/page_map/shown_stack.hpp); `steps`: how much of that there was. REQUIRES: names are held, or the
// lock of gc.
std::vector<PackHeat> heat_of_packs(StoreCore& store, const Roots& roots,
                                    std::uint64_t* steps = nullptr);

}  // namespace vellum::store
