#include "remote/objects/remote_file.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "format/wire/superblock.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"
#include "remote/objects/lock_note.hpp"

namespace vellum::remote {
namespace {

constexpr format::WholeFileKind kRemoteFile{"VLMRMO2\n", kMaxRemoteFileBytes, "not a remote's file",
                                            "too large for a remote's file"};
// Without heads and epochs.
constexpr format::WholeFileKind kOldRemoteFile{
    "VLMRMOT\n", kMaxRemoteFileBytes, "not a remote's file", "too large for a remote's file"};
constexpr std::uint64_t kOneWriterFlag = 1;
constexpr std::uint64_t kPullingFlag = 2;  // each branch has the head of an unfinished pull
constexpr std::uint64_t kObjectsKeyFlag = 4;
constexpr std::uint64_t kLockFlag = 8;
constexpr std::uint64_t kSeenHeadFlag = 16;
constexpr std::size_t kMinBranchBytes = 74;

}  // namespace

std::vector<std::byte> encode_remote_file(const RemoteFile& file, const format::FileSeal& seal) {
  std::vector<std::byte> body;
  format::ByteWriter w(body);
  w.string(file.url);
  w.bytes(file.writer);
  const bool is_pulling = std::ranges::any_of(
      file.branches, [](const SeenBranch& branch) { return branch.pulling != WriteId{}; });
  w.varint((file.one_writer ? kOneWriterFlag : 0) | (is_pulling ? kPullingFlag : 0) |
           (file.objects_key.has_value() ? kObjectsKeyFlag : 0) |
           (file.lock.has_value() ? kLockFlag : 0) |
           (file.seen_head.number != 0 ? kSeenHeadFlag : 0));
  file.replicated.write(w);
  w.varint(file.branches.size());
  for (const SeenBranch& branch : file.branches) {
    w.string(branch.name);
    w.bytes(branch.seen);
    w.bytes(branch.intended);
    w.bytes(branch.pulling);
    w.u64(branch.branch_id);
    w.u64(branch.sequence);
    w.u64(static_cast<std::uint64_t>(branch.time_ns));
    w.varint(branch.epoch);
    if (!is_pulling) continue;
    w.u64(branch.pulled_sequence);
    w.u64(static_cast<std::uint64_t>(branch.pulled_time_ns));
    w.varint(branch.pulled_epoch);
  }
  w.u64(file.head_number);
  w.bytes(file.head_hash);
  if (seal.keys != nullptr) w.bytes(file.key_slots_hash);
  if (file.objects_key.has_value()) {
    assert(file.objects_key->slots.size() <= format::kMaxKeySlotsBytes);
    w.bytes(file.objects_key->fingerprint);
    w.varint(file.objects_key->slots.size());
    w.bytes(file.objects_key->slots);
  }
  if (file.lock.has_value()) {
    w.varint(static_cast<std::uint64_t>(file.lock->duration.count()));
    w.u64(static_cast<std::uint64_t>(file.lock->renewed_ns));
  }
  if (file.seen_head.number != 0) {
    w.u64(file.seen_head.number);
    w.bytes(file.seen_head.write_id);
    w.bytes(file.seen_hash);
  }
  return encode_whole_file(kRemoteFile, body, seal);
}

const char* decode_remote_file(std::span<const std::byte> bytes, const format::FileSeal& seal,
                               RemoteFile& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  const bool is_old = has_magic(kOldRemoteFile, bytes);
  const auto& kind = is_old ? kOldRemoteFile : kRemoteFile;
  if (const char* problem = open_whole_file(kind, bytes, seal, opened, body)) return problem;
  out = {};
  format::ByteReader in(body);
  out.url = in.string(kMaxUrlBytes);
  read_bytes(in, out.writer);
  const std::uint64_t flags = in.varint();
  out.one_writer = (flags & kOneWriterFlag) != 0;
  if (!out.replicated.read(in)) return "malformed";
  const std::uint64_t count = in.varint();
  constexpr std::uint64_t kFlags =
      kOneWriterFlag | kPullingFlag | kObjectsKeyFlag | kLockFlag | kSeenHeadFlag;
  if (!in.ok() || flags > (is_old ? kOneWriterFlag : kFlags) || count > in.left() / kMinBranchBytes)
    return "malformed";
  out.branches.resize(static_cast<std::size_t>(count));
  for (SeenBranch& branch : out.branches) {
    branch.name = in.string(format::kMaxNameBytes);
    read_bytes(in, branch.seen);
    read_bytes(in, branch.intended);
    read_bytes(in, branch.pulling);
    branch.branch_id = in.u64();
    branch.sequence = in.u64();
    branch.time_ns = static_cast<std::int64_t>(in.u64());
    if (!is_old) branch.epoch = in.varint();
    if ((flags & kPullingFlag) != 0) {
      branch.pulled_sequence = in.u64();
      branch.pulled_time_ns = static_cast<std::int64_t>(in.u64());
      branch.pulled_epoch = in.varint();
    }
    if (!in.ok() || format::name_problem(branch.name) != nullptr) return "malformed";
  }
  if (!is_old) {
    out.head_number = in.u64();
    read_bytes(in, out.head_hash);
    if (seal.keys != nullptr) read_bytes(in, out.key_slots_hash);
    if ((flags & kObjectsKeyFlag) != 0) {
      ObjectsKeyEntry& key = out.objects_key.emplace();
      read_bytes(in, key.fingerprint);
      const std::uint64_t bytes = in.varint();
      if (!in.ok() || bytes > format::kMaxKeySlotsBytes) return "malformed";
      const auto slots = in.bytes(static_cast<std::size_t>(bytes));
      key.slots.assign(slots.begin(), slots.end());
    }
    if ((flags & kLockFlag) != 0) {
      const std::uint64_t seconds = in.varint();
      if (seconds == 0 || seconds > static_cast<std::uint64_t>(kMaxLock.count()))
        return "malformed";
      out.lock = {std::chrono::seconds(seconds), static_cast<std::int64_t>(in.u64())};
    }
    if ((flags & kSeenHeadFlag) != 0) {
      out.seen_head.number = in.u64();
      read_bytes(in, out.seen_head.write_id);
      read_bytes(in, out.seen_hash);
      if (out.seen_head.number == 0) return "malformed";
    }
  }
  return in.done() ? nullptr : "malformed";
}

}  // namespace vellum::remote
