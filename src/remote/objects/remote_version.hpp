// remote/objects/remote_version.hpp: a version of a remote, as heads and name tables store it.
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes/sha256.hpp"
#include "format/version.hpp"
#include "format/wire/encoding.hpp"
#include "format/wire/wire.hpp"
#include "remote/objects/object_key.hpp"

namespace vellum::remote {

using WriteId = std::array<std::byte, 16>;
// As EmbeddedObject::head_id has it.
std::uint64_t id_start(const WriteId& id) noexcept;
// Of one version, at most.
inline constexpr std::size_t kMaxEmbeddedObjects = 1024;

struct RemoteVersion {
  bool is_branch = false;
  // Name, branch, time, order and version of a snapshot. For a branch, `branch` is the name, and
  // time and order are 0.
  format::SnapshotRef ref;
  std::uint64_t epoch = 0;  // of a branch, from 1; of a snapshot 0
  WriteId writer{};    // the store that pushed it last; zeros: an older Vellum pushed the snapshot
  WriteId write_id{};  // of a branch: of the push that gave it this version; of a snapshot: zeros
  std::optional<format::Encoding> encoding;  // of a branch that has its own
  ListName list;
  // Of a branch: lists and pieces of this version that are in heads; ascending. Those without an
  // object of their own are only here.
  std::vector<EmbeddedObject> embedded;
  bool operator==(const RemoteVersion&) const = default;
};

// Versions, compressed: those of one store have much in common. REQUIRES: they ascend by name.
void write_names(format::ByteWriter& w, std::span<const RemoteVersion> names);
bool has_embedded(std::span<const RemoteVersion> names) noexcept;
// False: malformed, or a list has a generation above this one.
bool read_names(format::ByteReader& in, std::uint32_t generation, std::vector<RemoteVersion>& out);

}  // namespace vellum::remote
