// format/records/based_pages.hpp: the base pages of a record of based pages.
//
// The pages of this record are compressed with other pages, its base pages, as a prefix. The base
// pages are in `pages` records at smaller offsets of the same pack. Those records have no base
// pages. The stored payload is the list of base pages, then a Zstandard frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/limits.hpp"

namespace vellum::format {

inline constexpr std::size_t kMaxBasePages = 32;

// A page in a record of the same pack. The offset and the tag are those that references give.
struct BasePage {
  std::uint64_t offset_bytes = 0;
  std::uint32_t tag = 0;
  std::uint32_t slot = 0;
  bool operator==(const BasePage&) const = default;
};

// REQUIRES: 1 to kMaxBasePages, ascending by offset and slot. Base pages in one record have one
// tag.
std::vector<std::byte> encode_base_pages(std::span<const BasePage> bases);

// Reads the list at the start of a stored payload. `offset_bytes`: of the record in its pack.
// Returns the number of base pages and sets `list_bytes`. Returns 0 for a list that
// encode_base_pages() does not write, and for a base page that is not in front of the record. Does
// not allocate: the fault handler uses it. REQUIRES: `out` has room for kMaxBasePages.
std::size_t decode_base_pages(std::span<const std::byte> stored, std::uint64_t offset_bytes,
                              std::span<BasePage> out, std::size_t& list_bytes) noexcept;

}  // namespace vellum::format
