// format/version.hpp: an encoded Version, and the ref file that gives one a name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/types.hpp"

namespace vellum::format {

std::vector<std::byte> encode_version(const Version& v);
// Checks every bound (region size, run count, name and message lengths, pack end). No checksum of
// its own: the ref, frame or record around it has one.
bool decode_version(std::span<const std::byte> bytes, Version& out);

// A snapshot: snapshots/<name>.ref, written once, never changed.
struct SnapshotRef {
  std::string name;    // must equal the file's name: a copied or renamed ref is refused
  std::string branch;  // name of the branch it was taken on, at that time
  std::int64_t created_ns = 0;
  Version version;
  bool operator==(const SnapshotRef&) const = default;
};
inline constexpr std::size_t kMaxSnapshotRefBytes = 64u << 10;

std::vector<std::byte> encode_snapshot_ref(const SnapshotRef& ref, const Uuid& store_id);
// nullptr, or what is wrong.
const char* decode_snapshot_ref(std::span<const std::byte> bytes, const Uuid& store_id,
                                SnapshotRef& out);

}  // namespace vellum::format
