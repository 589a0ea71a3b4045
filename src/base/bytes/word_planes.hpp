// base/bytes/word_planes.hpp: a filter that makes arrays of 8-byte numbers compressible.
//
// It stores the first bytes of all words, then the second bytes, and so on. The high bytes of small
// integers, ids, times and pointers are then adjacent and nearly all equal ("byte shuffle", as in
// HDF5 and Blosc).
#pragma once

#include <cstddef>
#include <span>

namespace vellum::base {

inline constexpr std::size_t kWordBytes = 8;

// The bytes after the last whole unit are not changed.
inline constexpr std::size_t kWordPlanesUnitBytes = 128;

// REQUIRES: sizes equal, no overlap. Neither allocates.
void split_word_planes(std::span<const std::byte> words, std::span<std::byte> planes) noexcept;
void join_word_planes(std::span<const std::byte> planes, std::span<std::byte> words) noexcept;
// The same for a part of the words, from `offset_bytes` on. REQUIRES: offset and size are whole
// units, and so is the size of the planes.
void join_word_planes_part(std::span<const std::byte> planes, std::size_t offset_bytes,
                           std::span<std::byte> words) noexcept;

// The same for structures of several words: stores the first words of all structures, then the
// second words, and so on. split_word_planes() then keeps equal fields together. An incomplete
// structure remains at the end. REQUIRES: sizes equal, no overlap, fields_per_structure >= 1.
// Neither allocates.
void gather_fields(std::span<const std::byte> structures, std::span<std::byte> fields,
                   std::size_t fields_per_structure) noexcept;
void scatter_fields(std::span<const std::byte> fields, std::span<std::byte> structures,
                    std::size_t fields_per_structure) noexcept;

}  // namespace vellum::base
