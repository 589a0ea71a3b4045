// remote/objects/head.hpp: a head of a remote: the names of its versions.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/sha256.hpp"
#include "format/encoding.hpp"
#include "format/version.hpp"
#include "remote/objects/object_key.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxHeadBytes = 64u << 20;

using WriteId = std::array<std::byte, 16>;

// A list of pieces, as a head names it.
struct ListName {
  ContentName name;
  std::uint64_t size_bytes = 0;  // 0: there are no pieces, and no such object
  bool operator==(const ListName&) const = default;
};

struct RemoteName {
  bool is_branch = false;
  // Name, branch, time, order and version of a snapshot. Of a branch, `branch` is the name, and time
  // and order are 0.
  format::SnapshotRef ref;
  std::uint64_t epoch = 0;  // of a branch, from 1; of a snapshot 0
  WriteId writer{};         // of a branch: the store that pushed it last; of a snapshot: zeros
  WriteId write_id{};       // of the push that published this version
  std::optional<format::Encoding> encoding;  // of a branch that has its own
  ListName list;
  bool operator==(const RemoteName&) const = default;
};

struct Head {
  std::uint64_t number = 0;  // from 1; 0: the remote is empty
  std::uint32_t generation = 0;
  WriteId write_id{};
  base::Sha256 before{};
  WriteId only_writer{};          // the store that alone may push; zeros: any may
  std::vector<RemoteName> names;  // ascending by name
  bool operator==(const Head&) const = default;

  const RemoteName* find(const std::string& name) const noexcept;
};

// REQUIRES: decode_head() would accept it.
std::vector<std::byte> encode_head(const Head& head, const format::Uuid& store_id);
// nullptr, or a description of the error.
const char* decode_head(std::span<const std::byte> bytes, const format::Uuid& store_id, Head& out);

}  // namespace vellum::remote
