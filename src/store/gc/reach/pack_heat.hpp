// store/gc/reach/pack_heat.hpp: packs that are likely to be read soon: those that new versions need.
#pragma once

#include <vector>

#include "store/gc/reach/roots.hpp"

namespace vellum::store {

struct PackHeat {
  // The rank of a pack that no version needs, or only a version without a name.
  static constexpr std::uint32_t kCold = UINT32_MAX;

  std::uint64_t pack = 0;
  std::uint64_t bytes = 0;     // on the medium
  bool settled = false;        // no writer will write it any more
  std::uint32_t rank = kCold;  // 0: a branch's head needs it; n: the nth newest snapshot, no newer
  std::uint64_t records = 0;   // of the pack, needed by this version or by all heads together
  // The rank by versions that name the pack: opening them opens it, needed or not.
  std::uint32_t named_rank = kCold;
};

// The heat of every pack in `roots`, hottest first. It costs what differs from version to version
// (store/page_map/shown_stack.hpp); `steps` receives how much that was. REQUIRES: names are held,
// or the lock of gc.
std::vector<PackHeat> heat_of_packs(StoreDirectory& store, const Roots& roots,
                                    std::uint64_t* steps = nullptr);

}  // namespace vellum::store
