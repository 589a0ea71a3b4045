// format/newest_snapshots.hpp: the file snapshots.newest, the newest snapshots in their order.
//
// It is only a hint. A reader of the newest snapshots need not read the refs of all others
// (store/catalog/snapshots/newest_snapshots.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::size_t kMaxNewestSnapshots = 128;
inline constexpr std::uint32_t kMaxNewestSnapshotsBytes = 64u << 10;  // the whole file

// Of a directory. No two states of it have the same one, and no copy of it has.
struct DirectoryState {
  std::int64_t modified_ns = 0;  // set by the program that writes the file
  std::int64_t changed_ns = 0;   // which the file system sets then
  std::uint64_t inode = 0;
  bool operator==(const DirectoryState&) const = default;
};

struct NewestSnapshots {
  struct Entry {
    std::uint64_t order = 0;
    std::string name;
    bool operator==(const Entry&) const = default;
  };
  std::uint64_t last_order = 0;     // that was assigned: the number in snapshots.order
  DirectoryState refs;              // of the directory `snapshots` after its last change
  bool has_all = false;             // the entries are all snapshots of the store
  bool has_latest_members = false;  // a snapshot's name may begin with "latest+"
  std::vector<Entry> entries;       // in the order of comes_before()
  bool operator==(const NewestSnapshots&) const = default;
};

// Newest first; snapshots of the same order by name.
bool comes_before(const NewestSnapshots::Entry& a, const NewestSnapshots::Entry& b) noexcept;

std::vector<std::byte> encode_newest_snapshots(const NewestSnapshots& newest, const FileSeal& seal);
// nullptr, or a description of the error.
const char* decode_newest_snapshots(std::span<const std::byte> bytes, const FileSeal& seal,
                                    NewestSnapshots& out);

}  // namespace vellum::format
