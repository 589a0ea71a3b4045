// Which power cuts are tried: what of the writes since the last flush has reached the medium.
#pragma once

#include <cstdint>
#include <vector>

#include "power/block_log_lib.hpp"
#include "power/file_systems_lib.hpp"

namespace vellum::power {

struct Piece {
  std::size_t entry = 0;      // of the log: a write
  std::vector<bool> sectors;  // that have arrived; empty: all
};

struct Cut {
  std::size_t at = 0;  // entries before this one have been asked for
  std::vector<Piece> pieces;
  const char* kind = "";
};

// At most `most` cuts, ascending by `at`, no two of them the same:
//   - at each flush: nothing, and all, of the writes since the flush before it
//   - between flushes: every prefix of the writes
//   - from there on seeded samples: any subset of the writes, and in every second sample some of
//     the writes torn between sectors.
// When the first two kinds are more than two thirds, they are thinned out evenly.
std::vector<Cut> plan_cuts(const BlockLog& log, const FileSystem& system, std::size_t most,
                           std::uint64_t seed);

}  // namespace vellum::power
