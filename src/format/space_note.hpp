// format/space_note.hpp: the file gc.space: what the last gc has left of the packs. A hint and
// nothing else: a writer reads it to tell when the next gc is worth it
// (store/catalog/space_note.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/types.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMaxSpaceNoteBytes = 4096;  // the whole file

struct SpaceNote {
  std::uint64_t left_bytes = 0;    // that packs at home took on the medium afterwards
  std::uint64_t needed_bytes = 0;  // of them, by versions
  bool operator==(const SpaceNote&) const = default;
};

std::vector<std::byte> encode_space_note(const SpaceNote& note, const Uuid& store_id);
// nullptr, or what is wrong with the file.
const char* decode_space_note(std::span<const std::byte> bytes, const Uuid& store_id,
                              SpaceNote& out);

}  // namespace vellum::format
