// remote/objects/remote_file.hpp: the file in which a store keeps where a remote is, and what this
// store has seen of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/wire/types.hpp"
#include "remote/objects/head.hpp"
#include "remote/objects/order_set.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxRemoteFileBytes = 1u << 20;
inline constexpr std::size_t kMaxUrlBytes = 4096;

struct SeenBranch {
  std::string name;
  WriteId seen{};      // of the remote's branch, as last pushed or pulled
  WriteId intended{};  // of a push that has begun to publish; zeros: none has
  WriteId pulling{};   // of a pull that has begun to change the local branch; zeros: none has
  // The head of the local branch when `seen` was.
  std::uint64_t branch_id = 0, sequence = 0;
  std::int64_t time_ns = 0;
  std::uint64_t epoch = 0;  // of the remote's branch then; 0: an older Vellum has noted it
  // The head that the local branch gets from the pull that `pulling` is of, and the remote's epoch.
  std::uint64_t pulled_sequence = 0;
  std::int64_t pulled_time_ns = 0;
  std::uint64_t pulled_epoch = 0;
  bool operator==(const SeenBranch&) const = default;
};

struct RemoteFile {
  std::string url;
  WriteId writer{};         // random: this store, as it names itself to the remote
  bool one_writer = false;  // this is such a remote
  OrderSet replicated;      // snapshots; the remote may have forgotten some of them since
  // A head that this store has published there. Number 0: none, or an older Vellum has.
  std::uint64_t head_number = 0;
  base::Sha256 head_hash{};
  std::vector<SeenBranch> branches;
  bool operator==(const RemoteFile&) const = default;
};

std::vector<std::byte> encode_remote_file(const RemoteFile& file, const format::Uuid& store_id);
// nullptr, or a description of the error.
const char* decode_remote_file(std::span<const std::byte> bytes, const format::Uuid& store_id,
                               RemoteFile& out);

}  // namespace vellum::remote
