#include "format/group.hpp"

#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "format/version.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr WholeFileKind kGroupKind{kGroupMagic, kGroupBytes, "not a group", "larger than a group"};
constexpr WholeFileKind kRecordKind{kGroupRecordMagic, kMaxGroupRecordBytes,
                                    "not the record of a global version",
                                    "larger than any record of a global version"};
static_assert(kGroupBytes == kWholeFileHeaderBytes + 8 + 4 + 4 + 8);
// Two ids, four numbers and three strings that may be empty.
constexpr std::size_t kMinPartitionBytes = 16 + 16 + 4 + 3;

bool path_ok(const std::string& path) noexcept {
  return !path.empty() && path.find('\0') == std::string::npos;
}

bool host_ok(const std::string& host) noexcept { return host.find('\0') == std::string::npos; }

bool pin_ok(const GroupRecord& record) noexcept {
  return record.pin.epoch >= 1 && record.pin.epoch <= record.epoch;
}

const char* head_problem(const GroupRecord& record) noexcept {
  if (record.number == 0 || record.epoch == 0 || !pin_ok(record)) return "malformed number";
  if (!record.name.empty() && name_problem(record.name) != nullptr) return "malformed name";
  return nullptr;
}

bool partition_ok(const GroupPartition& p) noexcept {
  return p.order != 0 && p.order <= kMaxSnapshotOrder && region_size_ok(p.region_bytes) &&
         path_ok(p.store) && name_problem(p.branch) == nullptr && host_ok(p.host);
}

// A string that equals the one of the previous partition is written as an empty one.
void write_string(ByteWriter& w, const std::string& text, const std::string* before) {
  w.string(before != nullptr && *before == text ? std::string() : text);
}

std::string read_string(ByteReader& in, std::size_t limit_bytes, const std::string* before) {
  std::string text = in.string(limit_bytes);
  return text.empty() && before != nullptr ? *before : text;
}

void write_partition(ByteWriter& w, const GroupPartition& p, const GroupPartition* before) {
  w.bytes(p.store_id);
  w.bytes(p.digest);
  w.varint(p.order);
  w.varint(p.sequence);
  w.varint(p.region_bytes);
  w.varint(p.bytes_written);
  w.string(p.store);
  write_string(w, p.branch, before == nullptr ? nullptr : &before->branch);
  write_string(w, p.host, before == nullptr ? nullptr : &before->host);
}

bool read_partition(ByteReader& in, GroupPartition& p, const GroupPartition* before) {
  read_bytes(in, p.store_id);
  read_bytes(in, p.digest);
  p.order = in.varint();
  p.sequence = in.varint();
  p.region_bytes = in.varint();
  p.bytes_written = in.varint();
  p.store = in.string(kMaxGroupPathBytes);
  p.branch = read_string(in, kMaxNameBytes, before == nullptr ? nullptr : &before->branch);
  p.host = read_string(in, kMaxGroupHostBytes, before == nullptr ? nullptr : &before->host);
  return in.ok() && partition_ok(p);
}

}  // namespace

std::vector<std::byte> encode_group_file(const GroupFile& group) {
  std::vector<std::byte> body;
  ByteWriter b(body);
  b.u64(static_cast<std::uint64_t>(group.created_ns));
  b.u32(group.partitions);
  b.u32(0);
  assert(kWholeFileHeaderBytes + body.size() + 8 == kGroupBytes);
  return encode_whole_file(kGroupKind, body, group.id);
}

const char* decode_group_file(std::span<const std::byte> bytes, GroupFile& out) {
  GroupFile group;
  group.id = id_of_whole_file(bytes);
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kGroupKind, bytes, group.id, body)) return problem;
  ByteReader in(body);
  group.created_ns = static_cast<std::int64_t>(in.u64());
  group.partitions = in.u32();
  const std::uint32_t reserved = in.u32();
  if (!in.done() || reserved != 0 || group.partitions == 0 ||
      group.partitions > kMaxGroupPartitions) {
    return "malformed";
  }
  out = group;
  return nullptr;
}

std::vector<std::byte> encode_group_record(const GroupRecord& record, const Uuid& group_id) {
  assert(record.message.size() <= kMaxMessageBytes);
  assert(!record.partitions.empty() && record.partitions.size() <= kMaxGroupPartitions);
  std::vector<std::byte> body;
  ByteWriter b(body);
  b.varint(record.number);
  b.varint(record.epoch);
  b.varint(record.pin.epoch);
  b.varint(record.pin.attempt);
  b.u64(static_cast<std::uint64_t>(record.created_ns));
  b.string(record.name);
  b.string(record.message);
  b.varint(record.partitions.size());
  const GroupPartition* before = nullptr;
  for (const GroupPartition& p : record.partitions) {
    write_partition(b, p, before);
    before = &p;
  }
  if (kWholeFileHeaderBytes + body.size() + 8 > kMaxGroupRecordBytes) {
    fail(Errc::invalid_argument, "the record of global version {} would have {} bytes, at most {}",
         record.number, body.size(), kMaxGroupRecordBytes);
  }
  return encode_whole_file(kRecordKind, body, group_id);
}

const char* decode_group_record(std::span<const std::byte> bytes, const Uuid& group_id,
                                GroupRecord& out) {
  const Uuid id = id_of_whole_file(bytes);
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kRecordKind, bytes, id, body)) return problem;
  if (id != group_id) return "belongs to another group";
  ByteReader in(body);
  GroupRecord record;
  record.number = in.varint();
  record.epoch = in.varint();
  record.pin.epoch = in.varint();
  record.pin.attempt = in.varint();
  record.created_ns = static_cast<std::int64_t>(in.u64());
  record.name = in.string(kMaxNameBytes);
  record.message = in.string(kMaxMessageBytes);
  const std::uint64_t n = in.varint();
  if (!in.ok()) return "malformed";
  if (const char* problem = head_problem(record)) return problem;
  if (n == 0 || n > kMaxGroupPartitions || n > in.left() / kMinPartitionBytes) {
    return "malformed number of partitions";
  }
  record.partitions.resize(static_cast<std::size_t>(n));
  const GroupPartition* before = nullptr;
  for (GroupPartition& p : record.partitions) {
    if (!read_partition(in, p, before)) return "malformed partition";
    before = &p;
  }
  if (!in.done()) return "malformed";
  out = std::move(record);
  return nullptr;
}

}  // namespace vellum::format
