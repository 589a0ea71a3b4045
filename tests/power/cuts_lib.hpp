// The power cuts to try: which of the writes since the last flush have reached the medium.
#pragma once

#include <cstdint>
#include <vector>

#include "power/block_log_lib.hpp"
#include "power/file_systems_lib.hpp"

namespace vellum::power {

struct PartialWrite {
  std::size_t entry = 0;      // of the log: a write
  std::vector<bool> sectors;  // those that have reached the medium; empty: all
};

struct Cut {
  std::size_t at = 0;  // the number of entries requested before the cut
  std::vector<PartialWrite> pieces;
  const char* kind = "";
};

// At most `most` cuts, ascending by `at`, all different:
//   - at each flush: none, and all, of the writes since the previous flush
//   - between flushes: every prefix of the writes
//   - then seeded samples: any subset of the writes, and in every second sample some of the writes
//     torn between sectors.
// If the first two kinds exceed two thirds, they are thinned out evenly.
std::vector<Cut> plan_cuts(const BlockLog& log, const FileSystem& system, std::size_t most,
                           std::uint64_t seed);

}  // namespace vellum::power
