// format/image_state.hpp: the state of a branch's image, the plain file that engine `mapped` maps:
// branches/<name>/image.state, replaced as a whole, and image.touched beside it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr char kImageStateMagic[] = "VLMIMAG\n";
inline constexpr std::size_t kMaxImageStateBytes = 8u << 10;
inline constexpr std::size_t kMaxImagePathBytes = 4096;

struct ImageState {
  std::uint64_t branch_id = 0;
  // A region maps the image, or a crash has ended one that did. The image then holds the head
  // except, perhaps, in the ranges that image.touched names.
  bool in_use = false;
  // Any page may differ from the head.
  bool all_touched = false;
  // Another program wrote every difference from the head. As long as the head is the one named
  // here, these differences are the region's uncommitted content.
  bool adopting = false;
  // The head that the image held when this was written.
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;
  // The file at the time of writing this.
  std::uint64_t device = 0, inode = 0, size_bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0, born_ns = 0;
  std::string path;  // absolute; empty: the file `image` in the branch's own directory
  bool operator==(const ImageState&) const = default;
};

std::vector<std::byte> encode_image_state(const ImageState& state, const Uuid& store_id);
// nullptr, or a description of the error.
const char* decode_image_state(std::span<const std::byte> bytes, const Uuid& store_id,
                               ImageState& out);

// image.touched: one bit per 2 MiB of the region, in sectors with a checksum each. A sector is
// overwritten in place, so it is no larger than the unit that the medium writes as a whole.
inline constexpr std::size_t kTouchedSectorBytes = 512;
inline constexpr std::size_t kTouchedWords = kTouchedSectorBytes / 8 - 1;
inline constexpr std::size_t kWriteIntentBitsPerSector = kTouchedWords * 64;
inline constexpr std::uint64_t kWriteIntentRangeBytes = 2u << 20;
using TouchedSector = std::array<std::uint64_t, kTouchedWords>;

// `branch_id` and `index`, the sector's place in the file, go into the checksum.
std::array<std::byte, kTouchedSectorBytes> encode_touched_sector(const TouchedSector& ranges,
                                                                 const Uuid& store_id,
                                                                 std::uint64_t branch_id,
                                                                 std::uint64_t index);
bool decode_touched_sector(std::span<const std::byte> bytes, const Uuid& store_id,
                           std::uint64_t branch_id, std::uint64_t index,
                           TouchedSector& out) noexcept;

}  // namespace vellum::format
