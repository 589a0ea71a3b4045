// format/wire/types.hpp: the vocabulary of the on-disk format (docs/format.md gives the bytes).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
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

// The facts of a commit. Its journal frame and the version that it completes state the same ones.
// A new fact is added here and in format/wire/commit_info.hpp, which encodes and decodes both.
struct CommitInfo {
  std::int64_t time_ns = 0;        // since 1970-01-01 UTC
  std::uint64_t region_bytes = 0;  // multiple of kPageBytes
  std::uint64_t base_address = 0;  // of the mapping; 0: none recorded
  std::string message;
  // Size of the region's plain file; the bytes after it are zero. None: the whole region.
  std::optional<std::uint64_t> file_bytes = {};

  // The facts of a structure derived from this one.
  const CommitInfo& info() const noexcept { return *this; }
  void set_info(CommitInfo info) noexcept { *this = std::move(info); }
  bool operator==(const CommitInfo&) const = default;
};

// A whole version: everything needed to open it. Stored in snapshot refs, in the base frame of a
// journal, and, for repair, in a pack. CommitInfo: of the last commit.
struct Version : CommitInfo {
  std::uint64_t branch_id = 0;
  std::uint64_t sequence = 0;  // number of commits on this line since the branch's origin
  std::string parent;          // the snapshot this line last passed through; empty at the origin
  // Since `parent`; a page counts each time a checkpoint wrote it.
  std::uint64_t pages_changed = 0;
  std::uint64_t bytes_added = 0;  // pack bytes appended since `parent`
  std::uint64_t active_pack = 0;  // where the branch's writer appends next; 0: none yet
  std::uint64_t active_pack_end_bytes = 0;
  std::uint64_t next_pack_number = 1;  // low half of the next pack id of this branch
  std::vector<RunRef> runs;  // newest first; an older run counts where the newer ones have no base
  bool operator==(const Version&) const = default;
};

}  // namespace vellum::format
