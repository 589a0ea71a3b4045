// remote/objects/remote_file.hpp: a store's file about one remote: its URL and the state last seen
// there.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/key_slots.hpp"
#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"
#include "remote/objects/head.hpp"
#include "remote/objects/order_set.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxRemoteFileBytes = 1u << 20;
inline constexpr std::size_t kMaxUrlBytes = 4096;

struct SeenBranch {
  std::string name;
  WriteId seen{};      // of the remote's branch at the last push or pull
  WriteId intended{};  // of a push that has begun to publish; zeros: none
  WriteId pulling{};   // of a pull that has begun to change the local branch; zeros: none
  // The head of the local branch at that push or pull.
  std::uint64_t branch_id = 0, sequence = 0;
  std::int64_t time_ns = 0;
  std::uint64_t epoch = 0;  // of the remote's branch at that time; 0: written by an older Vellum
  // The head that the pull of `pulling` gives the local branch, and the remote's epoch.
  std::uint64_t pulled_sequence = 0;
  std::int64_t pulled_time_ns = 0;
  std::uint64_t pulled_epoch = 0;
  bool operator==(const SeenBranch&) const = default;
};

// Of a remote that is encrypted by objects.
struct ObjectsKeyEntry {
  std::array<std::byte, 16> fingerprint{};  // of its data key
  // A copy of its key slots, as an object: it opens the remote where that has lost its own.
  std::vector<std::byte> slots;
  bool operator==(const ObjectsKeyEntry&) const = default;
};

// Of a remote whose objects are locked.
struct RemoteLock {
  std::chrono::seconds duration{0};
  // When this store has last looked at the locks of all objects that the remote needs, by the time
  // of the server; 0: never.
  std::int64_t renewed_ns = 0;
  bool operator==(const RemoteLock&) const = default;
};

struct RemoteFile {
  std::string url;
  WriteId writer{};         // random: the id of this store at the remote
  bool one_writer = false;  // only one store may push to the remote
  OrderSet replicated;      // snapshots; the remote may have forgotten some of them since
  // A head that this store has published there. Number 0: none, or written by an older Vellum. A hash
  // of zeros: the remote has lost it, and this store has published none since.
  std::uint64_t head_number = 0;
  base::Sha256 head_hash{};
  // Of an encrypted store: of the key slots that it has last put there, or got from there; zeros: it
  // has put none.
  base::Sha256 key_slots_hash{};
  std::optional<ObjectsKeyEntry> objects_key;  // only in a plain store
  std::optional<RemoteLock> lock;
  // Of a store that has published no head there: the newest head that a pull has seen, and the hash
  // of its frame. Number 0: none.
  HeadId seen_head;
  base::Sha256 seen_hash{};
  std::vector<SeenBranch> branches;
  bool operator==(const RemoteFile&) const = default;
};

std::vector<std::byte> encode_remote_file(const RemoteFile& file, const format::FileSeal& seal);
// nullptr, or a description of the error.
const char* decode_remote_file(std::span<const std::byte> bytes, const format::FileSeal& seal,
                               RemoteFile& out);

}  // namespace vellum::remote
