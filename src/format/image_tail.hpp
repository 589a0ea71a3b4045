// format/image_tail.hpp: the tail of an image: bytes past the head's end that the program has
// appended and closed, and no commit has yet.
//
// It is in branches/<name>/image.tail, in one sector that is overwritten in place, without a flush.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/wire/types.hpp"

namespace vellum::format {

struct ImageTail {
  std::uint64_t branch_id = 0;
  // The head that the image has before the tail.
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;
  // The tail in the image; it begins at the head's end.
  std::uint64_t begin_bytes = 0, end_bytes = 0;
  std::uint64_t content_checksum = 0;  // checksum64 of these bytes
  // checksum64 of the boot's identity (random(4)). After another boot the medium may have any part
  // of the tail.
  std::uint64_t boot = 0;
  bool operator==(const ImageTail&) const = default;
};

// No larger than a medium's unit of atomic writes.
inline constexpr std::size_t kImageTailBytes = 72;
// The checksum of a tail's content is computed at each close(2), and at an opening after a kill.
inline constexpr std::uint64_t kMaxImageTailBytes = 1u << 20;

std::array<std::byte, kImageTailBytes> encode_image_tail(const ImageTail& tail,
                                                         const Uuid& store_id);
// False: there is none, or it is damaged.
bool decode_image_tail(std::span<const std::byte> bytes, const Uuid& store_id,
                       ImageTail& out) noexcept;

}  // namespace vellum::format
