// interfaces/privateer/link.hpp: the small file in a version's directory that identifies the
// version.
//
// A directory without its files is no longer that version. And programs copy a version's files into
// another directory (Metall does: into that of a new snapshot, and to copy a datastore). The file
// therefore names its version, and that version's last commit. In another directory it identifies
// the original of the copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vellum::privateer {

struct Link {
  std::string
      store;  // the store's path; relative to the version's directory if the store is in the base
  std::string name;  // in the store
  std::uint64_t block_bytes = 0;
  // Of the version's commit when the link was last written. 0: none yet.
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;

  bool operator==(const Link&) const = default;
};

// No value: there is no link. Errc::corrupted: the file is not a link.
std::optional<Link> read_link(const std::string& directory);
// Durable on return. REQUIRES: `store`, `name` and `block_bytes` are set.
void write_link(const std::string& directory, const Link& link);
void remove_link(const std::string& directory) noexcept;

}  // namespace vellum::privateer
