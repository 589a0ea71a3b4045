// format/image_state.hpp: the state of a branch's image, the plain file that engine `mapped` maps.
//
// It is in branches/<name>/image.state, replaced as a whole, and in image.touched.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr char kImageStateMagic[] = "VLMIMAG\n";
inline constexpr std::size_t kMaxImageStateBytes = 8u << 10;
inline constexpr std::size_t kMaxImagePathBytes = 4096;

struct ImageState {
  std::uint64_t branch_id = 0;
  // A region maps the image, or a crash ended a process that mapped it. Outside the ranges that
  // image.touched names, the image then equals the head.
  bool in_use = false;
  // Any page may differ from the head.
  bool all_touched = false;
  // Another program wrote every difference from the head. While the head is the one named here,
  // these differences are the region's uncommitted content.
  bool adopting = false;
  // The head that the image equalled at the time of writing this.
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;
  // The file at the time of writing this.
  std::uint64_t device = 0, inode = 0, size_bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0, born_ns = 0;
  std::string path;  // absolute; empty: the file `image` in the branch's own directory
  bool operator==(const ImageState&) const = default;
};

std::vector<std::byte> encode_image_state(const ImageState& state, const FileSeal& seal);
// nullptr, or a description of the error.
const char* decode_image_state(std::span<const std::byte> bytes, const FileSeal& seal,
                               ImageState& out);

// image.touched: one bit per 2 MiB of the region, in sectors with a checksum each. Sectors are
// overwritten in place. A sector is therefore no larger than the medium's unit of atomic writes.
inline constexpr std::size_t kTouchedSectorBytes = 512;
inline constexpr std::size_t kTouchedWords = kTouchedSectorBytes / 8 - 1;
inline constexpr std::size_t kWriteIntentBitsPerSector = kTouchedWords * 64;
inline constexpr std::uint64_t kWriteIntentRangeBytes = 2u << 20;
using TouchedSector = std::array<std::uint64_t, kTouchedWords>;

// The checksum includes `branch_id` and `index`, the sector's number in the file.
std::array<std::byte, kTouchedSectorBytes> encode_touched_sector(const TouchedSector& ranges,
                                                                 const Uuid& store_id,
                                                                 std::uint64_t branch_id,
                                                                 std::uint64_t index);
bool decode_touched_sector(std::span<const std::byte> bytes, const Uuid& store_id,
                           std::uint64_t branch_id, std::uint64_t index,
                           TouchedSector& out) noexcept;

}  // namespace vellum::format
