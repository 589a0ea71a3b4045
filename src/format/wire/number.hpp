// format/wire/number.hpp: format_version, the number after the magic of every file.
//
// The major number is in its low half, the minor in its high half. A file names the smallest number
// that its reader has to support. A reader that supports a minor supports all earlier ones. Within
// a major the headers keep their lengths and checksums. An unknown number in a header with a right
// checksum therefore means a newer Vellum. In any other header it means damage.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <string>

#include "format/wire/checks.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr const char* kNewerFormat = "written by a newer format";

constexpr std::uint32_t format_number(std::uint32_t major, std::uint32_t minor) noexcept {
  assert(major <= 0xffff && minor <= 0xffff);
  return minor << 16 | major;
}
static_assert(kFormatVersion == format_number(1, 0));
static_assert(kSealedFormatVersion == format_number(1, 1));
static_assert(kObjectsFormatVersion == format_number(1, 2));
inline constexpr std::uint32_t kNewestFormatVersion = kSealedFormatVersion;

constexpr bool number_is_newer(std::uint32_t number) noexcept {
  const std::uint32_t major = number & 0xffff, known = kNewestFormatVersion & 0xffff;
  return major > known || (major == known && number > kNewestFormatVersion);
}

constexpr bool number_is_known(std::uint32_t number) noexcept {
  return number == kFormatVersion || number == kSealedFormatVersion;
}

inline std::uint32_t number_of(std::span<const std::byte> file) noexcept {
  ByteReader in(file);
  in.u64();
  return in.u32();  // 0 if the file is too short
}

// `whole` is a header or a file that ends with its checksum.
inline bool is_newer(std::span<const std::byte> whole, std::uint64_t seed) noexcept {
  return number_is_newer(number_of(whole)) && ends_with_checksum(whole, seed);
}

// "1.0".
inline std::string number_text(std::uint32_t number) {
  return std::to_string(number & 0xffff) + "." + std::to_string(number >> 16);
}

}  // namespace vellum::format
