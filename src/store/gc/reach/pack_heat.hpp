// store/gc/reach/pack_heat.hpp: ranks packs by the newest version that needs them.
//
// The packs that new versions need are likely to be read soon.
#pragma once

#include <vector>

#include "store/gc/reach/roots.hpp"

namespace vellum::store {

struct PackHeat {
  // The rank of a pack that no version needs, or only a version without a name.
  static constexpr std::uint32_t kCold = UINT32_MAX;

  std::uint64_t pack = 0;
  std::uint64_t bytes = 0;  // on the medium
  bool settled = false;     // no writer will write it any more
  // 0: a branch's head needs the pack. n: the nth newest snapshot needs it, and no newer version.
  std::uint32_t rank = kCold;
  std::uint64_t records = 0;  // of the pack, needed by this version or by all heads together
  // The same for versions that name the pack. Opening them opens it, needed or not.
  std::uint32_t named_rank = kCold;
};

// The heat of every pack in `roots`, hottest first. The cost is proportional to the differences
// between versions (store/page_map/shown_stack.hpp); `steps` receives their number. REQUIRES: names
// are held, or the lock of gc.
std::vector<PackHeat> heat_of_packs(StoreDirectory& store, const Roots& roots,
                                    std::uint64_t* steps = nullptr);

}  // namespace vellum::store
