// interfaces/atomic_file/apply_pieces.hpp: writes the stores of commits into the file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "interfaces/atomic_file/medium.hpp"

namespace vellum::atomic_file {

// Bytes of the file, within a page.
struct Piece {
  std::uint64_t offset_bytes = 0;
  std::span<const std::byte> bytes;
};

// Writes the pieces, later ones over earlier ones, without a barrier. Sorts `pieces`. REQUIRES:
// their bytes lie in one log, in the order of the commits, and within the file.
void apply_pieces(std::vector<Piece>& pieces, MediumFile& image);

}  // namespace vellum::atomic_file
