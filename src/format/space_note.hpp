// format/space_note.hpp: the file gc.space, the size of the packs after the last gc.
//
// It is only a hint. A writer uses it to decide when the next gc is worthwhile
// (store/catalog/space_note.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMaxSpaceNoteBytes = 4096;  // the whole file

struct SpaceNote {
  std::uint64_t left_bytes = 0;    // size of the packs in the store's own directory after the gc
  std::uint64_t needed_bytes = 0;  // the part that versions need
  bool operator==(const SpaceNote&) const = default;
};

std::vector<std::byte> encode_space_note(const SpaceNote& note, const FileSeal& seal);
// nullptr, or a description of the error.
const char* decode_space_note(std::span<const std::byte> bytes, const FileSeal& seal,
                              SpaceNote& out);

}  // namespace vellum::format
