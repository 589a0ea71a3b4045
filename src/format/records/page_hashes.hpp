// format/records/page_hashes.hpp: hashes of pages that a checkpoint has written.
//
// A later writer looks up a page by its hash, to store a reference in place of the page. A hash is
// only a hint: the writer compares the contents.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::format {

struct PageHash {
  RecordRef record;  // of type pages
  std::uint32_t slot = 0;
  std::uint32_t hash = 0;  // the high half of the page's checksum64
  bool operator==(const PageHash&) const = default;
};

// Raw payload of a `hashes` record. Compact if consecutive hashes are mostly of one record.
// REQUIRES: 1..kMaxPageHashes hashes, aligned records.
std::vector<std::byte> encode_page_hashes(std::span<const PageHash> hashes);
bool decode_page_hashes(std::span<const std::byte> raw, std::vector<PageHash>& out);

}  // namespace vellum::format
