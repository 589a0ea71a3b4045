// format/records/based_pages.hpp: the base pages of a record of based pages.
//
// The pages of such a record are compressed with other pages as a prefix, its base pages. They lie
// in records of pages of the same pack, in front of it, which have no base pages themselves. The
// stored payload is the list of them, then a Zstandard frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/limits.hpp"

namespace vellum::format {

inline constexpr std::size_t kMaxBasePages = 32;

// A page of a record of the same pack; the offset and the tag are those of references.
struct BasePage {
  std::uint64_t offset_bytes = 0;
  std::uint32_t tag = 0;
  std::uint32_t slot = 0;
  bool operator==(const BasePage&) const = default;
};

// REQUIRES: 1 to kMaxBasePages, which ascend by offset and slot; those of a record have one tag.
std::vector<std::byte> encode_base_pages(std::span<const BasePage> bases);

// Reads the list at the start of the stored payload of a record to which references give
// `offset_bytes`. Returns how many base pages there are and sets `list_bytes`; 0: they are not what
// encode_base_pages() writes, or one does not lie in front of the record. Does not allocate: the
// fault handler uses it. REQUIRES: `out` has room for kMaxBasePages.
std::size_t decode_base_pages(std::span<const std::byte> stored, std::uint64_t offset_bytes,
                              std::span<BasePage> out, std::size_t& list_bytes) noexcept;

}  // namespace vellum::format
