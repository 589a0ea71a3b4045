// format/whole_file.hpp: what the files share that are written once and replaced as a whole
// (snapshot refs, the census, working sets, tiers, the state of an image): a header, a body, a
// checksum over both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/types.hpp"

namespace vellum::format {

inline constexpr std::size_t kWholeFileHeaderBytes = 32;

struct WholeFileKind {
  const char* magic;  // 8 bytes
  std::uint32_t max_bytes;
  const char* not_this;   // what is wrong with a file that begins otherwise
  const char* too_large;  // and with one of more than max_bytes
};

std::vector<std::byte> encode_whole_file(const WholeFileKind& kind, std::span<const std::byte> body,
                                         const Uuid& store_id);
// nullptr, and the body; or what is wrong with the file.
const char* open_whole_file(const WholeFileKind& kind, std::span<const std::byte> bytes,
                            const Uuid& store_id, std::span<const std::byte>& body) noexcept;

}  // namespace vellum::format
