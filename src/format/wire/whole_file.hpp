// format/wire/whole_file.hpp: the header and checksum of files that are replaced as a whole.
//
// These are snapshot refs, the census, working sets, tiers, and the state of an image. Each is a
// header, a body, and a checksum over both.
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
  const char* not_this;   // error text for a file with another magic
  const char* too_large;  // error text for a file larger than max_bytes
};

std::vector<std::byte> encode_whole_file(const WholeFileKind& kind, std::span<const std::byte> body,
                                         const Uuid& store_id);
// Returns nullptr and sets `body`, or returns a description of the error.
const char* open_whole_file(const WholeFileKind& kind, std::span<const std::byte> bytes,
                            const Uuid& store_id, std::span<const std::byte>& body) noexcept;

// The id in the header, of the store or group that the file belongs to. Zeros if the file is too
// short.
Uuid id_of_whole_file(std::span<const std::byte> bytes) noexcept;

}  // namespace vellum::format
