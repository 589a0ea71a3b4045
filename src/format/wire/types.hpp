// format/wire/types.hpp: the vocabulary of the on-disk format (docs/format.md gives the bytes).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/wire/limits.hpp"

namespace vellum::format {

using Uuid = std::array<std::byte, 16>;
using PageNumber = std::uint64_t;

// The offset of a record in a pack, and the low half of its checksum. Another tag at that offset
// means a stale, lost or misdirected write.
struct RecordRef {
  std::uint64_t pack = 0;
  std::uint64_t offset_bytes = 0;
  std::uint32_t tag = 0;
  auto operator<=>(const RecordRef&) const = default;
};

enum class PageKind : std::uint8_t {
  zero = 0,   // the page is all zero and has no record
  base = 1,   // slot `slot` of a pages record
  delta = 2,  // delta number `slot` of a deltas record, against the page's next older entry
};

// An entry of the page map: pages [page, page + count) of a version. For kind base, page + i is in
// slot + i of the record. Entries of kind delta have count 1. `depth` is the number of deltas from
// this one to the base (0 for zero and base).
struct MapEntry {
  PageNumber page = 0;
  std::uint32_t count = 1;
  std::uint32_t slot = 0;
  PageKind kind = PageKind::zero;
  std::uint8_t depth = 0;
  RecordRef record;
  bool operator==(const MapEntry&) const = default;
};

// A sorted run of the page map, given by its root record. The root lists the run's map blocks.
struct RunRef {
  RecordRef root;
  std::uint64_t entries = 0;
  bool operator==(const RunRef&) const = default;
};

// A version: everything that opening it needs. Stored in snapshot refs, in the base frame of a
// journal, and, for repair, in a pack.
struct Version {
  std::uint64_t branch_id = 0;
  std::uint64_t sequence = 0;      // number of commits on this line since the branch's origin
  std::int64_t time_ns = 0;        // of the commit, since 1970-01-01 UTC
  std::uint64_t region_bytes = 0;  // multiple of kPageBytes
  std::uint64_t base_address = 0;  // 0: none recorded
  std::string message;
  std::string parent;               // the last snapshot on this line; empty at the origin
  std::uint64_t pages_changed = 0;  // since `parent`; each checkpoint of a page counts
  std::uint64_t bytes_added = 0;    // pack bytes appended since `parent`
  std::uint64_t active_pack = 0;    // the branch's writer appends to it; 0: none yet
  std::uint64_t active_pack_end_bytes = 0;
  std::uint64_t next_pack_number = 1;  // low half of the next pack id of this branch
  // Newest first. An older run applies to the pages for which the newer ones have no base.
  std::vector<RunRef> runs;
  // The size of the region's plain file; all bytes past it are zero. None: the whole region.
  std::optional<std::uint64_t> file_bytes = {};
  bool operator==(const Version&) const = default;
};

}  // namespace vellum::format
