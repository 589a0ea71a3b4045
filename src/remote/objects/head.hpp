// remote/objects/head.hpp: a head of a remote: the versions that have changed since its name table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "remote/objects/remote_version.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxHeadBytes = 64u << 20;

struct Head {
  std::uint64_t number = 0;  // from 1; 0: the remote is empty
  std::uint32_t generation = 0;
  WriteId write_id{};
  base::Sha256 before{};
  WriteId only_writer{};                // the only store that may push; zeros: any store may push
  ObjectName table;                     // of older names (remote/objects/name_table.hpp)
  std::vector<RemoteVersion> versions;  // ascending by name; they override those of the table
  std::vector<std::string> gone;        // names of the table that are forgotten; ascending
  bool operator==(const Head&) const = default;

  const RemoteVersion* find(const std::string& name) const noexcept;
};

// REQUIRES: decode_head() would accept it.
std::vector<std::byte> encode_head(const Head& head, const format::Uuid& store_id);
// nullptr, or a description of the error.
const char* decode_head(std::span<const std::byte> bytes, const format::Uuid& store_id, Head& out);

}  // namespace vellum::remote
