// format/wire/whole_file.hpp: the frame of files that are written once and replaced as a whole (snapshot
// refs, the live set, working sets, tiers, the state of an image): a header, a body, and a checksum
// over both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::size_t kWholeFileHeaderBytes = 32;

// The text for a file of another store.
inline constexpr const char* kOtherStore = "belongs to another store";

struct WholeFileKind {
  const char* magic;  // 8 bytes
  std::uint32_t max_bytes;
  const char* not_this;   // error text for a file that begins otherwise
  const char* too_large;  // error text for one larger than max_bytes
};

std::vector<std::byte> encode_whole_file(const WholeFileKind& kind, std::span<const std::byte> body,
                                         const Uuid& store_id);
// nullptr, and the body; or a description of the error.
const char* open_whole_file(const WholeFileKind& kind, std::span<const std::byte> bytes,
                            const Uuid& store_id, std::span<const std::byte>& body) noexcept;

// The id in the header: of the store, or of whatever else the file belongs to. Zeros where the file
// is too short.
Uuid id_of_whole_file(std::span<const std::byte> bytes) noexcept;

}  // namespace vellum::format
