#include "format/image_state.hpp"

#include <cassert>
#include <cstring>

#include "base/bytes/checksum.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

enum Flags : std::uint32_t { kInUse = 1, kAllTouched = 2, kAdopting = 4, kKnownFlags = 7 };

// Depends on the sector's index. A stray sector therefore does not verify.
std::uint64_t sector_seed(const Uuid& store_id, std::uint64_t branch_id, std::uint64_t index) {
  const std::uint64_t place[] = {checksum_seed(store_id), branch_id, index};
  return base::checksum64(std::as_bytes(std::span(place)));
}

constexpr WholeFileKind kImageStateFile{kImageStateMagic, kMaxImageStateBytes,
                                        "not the state of an image",
                                        "larger than any state of an image"};

}  // namespace

std::vector<std::byte> encode_image_state(const ImageState& state, const FileSeal& seal) {
  std::vector<std::byte> body;
  ByteWriter b(body);
  b.u64(state.branch_id);
  b.u32((state.in_use ? kInUse : 0U) | (state.all_touched ? kAllTouched : 0U) |
        (state.adopting ? kAdopting : 0U));
  b.u32(0);
  b.u64(state.sequence);
  b.u64(static_cast<std::uint64_t>(state.time_ns));
  b.u64(state.device);
  b.u64(state.inode);
  b.u64(state.size_bytes);
  b.u64(static_cast<std::uint64_t>(state.modified_ns));
  b.u64(static_cast<std::uint64_t>(state.changed_ns));
  b.u64(static_cast<std::uint64_t>(state.born_ns));
  b.string(state.path);
  assert(kWholeFileHeaderBytes + body.size() + 8 <= kMaxImageStateBytes);
  return encode_whole_file(kImageStateFile, body, seal);
}

const char* decode_image_state(std::span<const std::byte> bytes, const FileSeal& seal,
                               ImageState& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kImageStateFile, bytes, seal, opened, body))
    return problem;
  ByteReader in(body);
  ImageState state;
  state.branch_id = in.u64();
  const std::uint32_t flags = in.u32();
  const std::uint32_t reserved = in.u32();
  state.in_use = (flags & kInUse) != 0;
  state.all_touched = (flags & kAllTouched) != 0;
  state.adopting = (flags & kAdopting) != 0;
  state.sequence = in.u64();
  state.time_ns = static_cast<std::int64_t>(in.u64());
  state.device = in.u64();
  state.inode = in.u64();
  state.size_bytes = in.u64();
  state.modified_ns = static_cast<std::int64_t>(in.u64());
  state.changed_ns = static_cast<std::int64_t>(in.u64());
  state.born_ns = static_cast<std::int64_t>(in.u64());
  state.path = in.string(kMaxImagePathBytes);
  if (!in.done() || (flags & ~std::uint32_t{kKnownFlags}) != 0 || reserved != 0) return "malformed";
  if (state.size_bytes > kMaxRegionBytes) return "an image larger than any region";
  if (!state.path.empty() && state.path.front() != '/') return "a path that is not absolute";
  if (state.path.find('\0') != std::string::npos) return "a path with a NUL";
  out = std::move(state);
  return nullptr;
}

std::array<std::byte, kTouchedSectorBytes> encode_touched_sector(const TouchedSector& ranges,
                                                                 const Uuid& store_id,
                                                                 std::uint64_t branch_id,
                                                                 std::uint64_t index) {
  static_assert(sizeof ranges + sizeof(std::uint64_t) == kTouchedSectorBytes);
  std::array<std::byte, kTouchedSectorBytes> out;
  std::memcpy(out.data(), ranges.data(), sizeof ranges);
  const std::uint64_t sum = base::checksum64(std::span(out).first(sizeof ranges),
                                             sector_seed(store_id, branch_id, index));
  std::memcpy(out.data() + sizeof ranges, &sum, sizeof sum);
  return out;
}

bool decode_touched_sector(std::span<const std::byte> bytes, const Uuid& store_id,
                           std::uint64_t branch_id, std::uint64_t index,
                           TouchedSector& out) noexcept {
  if (bytes.size() != kTouchedSectorBytes) return false;
  if (!ends_with_checksum(bytes, sector_seed(store_id, branch_id, index))) return false;
  std::memcpy(out.data(), bytes.data(), sizeof out);
  return true;
}

}  // namespace vellum::format
