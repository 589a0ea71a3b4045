// format/group.hpp: the files of a group: `vellum.group`, and one record for each global version.
//
// `vellum.group` identifies the group. A group is one region in many partitions, each a branch of a
// store. A global version names one version of each partition. Its record is the commit point: it
// is written when all partitions are durable, and never changed.
#pragma once

#include <array>
#include <compare>
#include <span>
#include <string>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMaxGroupPartitions = 1u << 17;
inline constexpr std::uint32_t kMaxGroupRecordBytes = 32u << 20;
inline constexpr std::uint32_t kMaxGroupPathBytes = 4096;
inline constexpr std::uint32_t kMaxGroupHostBytes = 255;
inline constexpr std::size_t kGroupBytes = 56;

// The file `vellum.group`, written once.
struct GroupFile {
  Uuid id{};
  std::int64_t created_ns = 0;
  std::uint32_t partitions = 1;
  bool operator==(const GroupFile&) const = default;
};

std::vector<std::byte> encode_group_file(const GroupFile& group);
// nullptr, or a description of the error; then `out` is unchanged.
const char* decode_group_file(std::span<const std::byte> bytes, GroupFile& out);

// The first half of the SHA-256 of the file of a snapshot's ref.
using VersionDigest = std::array<std::byte, 16>;

// One partition of a global version: a snapshot in a store.
struct GroupPartition {
  Uuid store_id{};
  VersionDigest digest{};
  std::uint64_t order = 1;     // of the snapshot, in its store
  std::uint64_t sequence = 0;  // commits on the branch's line
  std::uint64_t region_bytes = 0;
  std::uint64_t bytes_written = 0;  // by the commit of the version
  std::string store;                // path, absolute or relative to the directory of the records
  std::string branch;
  std::string host;  // of the rank
  bool operator==(const GroupPartition&) const = default;
};

// Names the snapshots of a global version, one in each store: the job's epoch, and its number of
// attempts. It is unique to the attempt.
struct GroupPin {
  std::uint64_t epoch = 1;
  std::uint64_t attempt = 0;
  auto operator<=>(const GroupPin&) const = default;
};

struct GroupRecord {
  std::uint64_t number = 1;  // one more for each global version
  std::uint64_t epoch = 1;   // of the job that wrote it; one more for each job
  GroupPin pin;              // an opening repeats that of the version that it opens
  std::int64_t created_ns = 0;
  std::string name;  // empty: kept until the next version
  std::string message;
  std::vector<GroupPartition> partitions;
  bool operator==(const GroupRecord&) const = default;
};

// REQUIRES: the sizes of message, paths and hosts are within their limits, and the number of
// partitions is within 1..kMaxGroupPartitions. Errc::invalid_argument: the record would be larger
// than any reader accepts.
std::vector<std::byte> encode_group_record(const GroupRecord& record, const Uuid& group_id);
// nullptr, or a description of the error; then `out` is unchanged.
const char* decode_group_record(std::span<const std::byte> bytes, const Uuid& group_id,
                                GroupRecord& out);

}  // namespace vellum::format
