// group/share.hpp: which partitions a rank opens if nobody says it.
#pragma once

#include <cstdint>
#include <vector>

namespace vellum::group {

// An even share: the first partitions to the first ranks.
inline std::vector<std::uint32_t> share_of(std::uint32_t partitions, int rank, int ranks) {
  const auto first = [&](int r) {
    return static_cast<std::uint32_t>(std::uint64_t{partitions} * static_cast<std::uint64_t>(r) /
                                      static_cast<std::uint64_t>(ranks));
  };
  std::vector<std::uint32_t> share;
  for (std::uint32_t p = first(rank); p < first(rank + 1); ++p) share.push_back(p);
  return share;
}

}  // namespace vellum::group
