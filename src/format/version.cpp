#include "format/version.hpp"

#include <cassert>
#include <cstring>

#include "format/wire/checks.hpp"
#include "format/wire/commit_info.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr WholeFileKind kRefKind{kSnapshotMagic, kMaxSnapshotRefBytes, "not a snapshot ref",
                                 "larger than any snapshot ref"};
// With a signature, which an older Vellum does not know.
constexpr WholeFileKind kSignedRefKind{kSignedSnapshotMagic, kMaxSnapshotRefBytes,
                                       "not a snapshot ref", "larger than any snapshot ref"};
constexpr WholeFileKind kSignersKind{kSignersMagic, kMaxSignersBytes, "not a list of signers",
                                     "larger than any list of signers"};
constexpr WholeFileKind kOrderKind{kSnapshotOrderMagic, kSnapshotOrderBytes,
                                   "not the order of snapshots", "larger than it can be"};
constexpr WholeFileKind kNoteKind{kSnapshotNoteMagic, kSnapshotNoteBytes,
                                  "not the note of a snapshot", "larger than any such note"};
static_assert(kWholeFileHeaderBytes + kMaxNameBytes + 40 + kSealBytes <= kSnapshotNoteBytes);
static_assert(kSnapshotOrderBytes == kWholeFileHeaderBytes + 8 + 8 &&
              kSnapshotOrderBytes + kSealBytes <= 512);
constexpr std::size_t kMinRunBytes = 7;  // pack, offset, entries: a byte each; and the tag
constexpr std::size_t kMaxRunBytes = 34;
static_assert(150 + kMaxMessageBytes + kMaxNameBytes + kMaxRunsPerVersion * kMaxRunBytes <=
              kMaxVersionBytes);
static_assert(kMaxVersionBytes + kFrameHeaderBytes <= kMinJournalHalfBytes,
              "a base frame always fits");
static_assert(kMaxVersionBytes + 3 * kMaxNameBytes + 256 <= kMaxSnapshotRefBytes);
static_assert(kMaxSigners * sizeof(base::Ed25519Public) + 64 <= kMaxSignersBytes);

// More map entries than a version can have: pages times the longest chain. The bound keeps sums far
// from overflow.
constexpr std::uint64_t kMaxRunEntries = kMaxPages * 256;

bool active_pack_ok(const Version& v) noexcept {
  if (v.active_pack == 0) return v.active_pack_end_bytes == 0;
  return v.active_pack_end_bytes >= kPackHeaderBytes &&
         v.active_pack_end_bytes <= kMaxPackOffsetBytes &&
         v.active_pack_end_bytes % kRecordAlignBytes == 0;
}

bool run_ok(const RunRef& r) noexcept {
  return r.root.pack != 0 && record_offset_ok(r.root.offset_bytes) && r.entries >= 1 &&
         r.entries <= kMaxRunEntries;
}

bool fields_ok(const Version& v) noexcept {
  if (!v.parent.empty() && name_problem(v.parent) != nullptr) return false;
  if (v.next_pack_number == 0 || v.next_pack_number > (1ULL << 32)) return false;
  return active_pack_ok(v);
}

bool read_runs(ByteReader& in, std::vector<RunRef>& out) {
  const std::uint64_t n = in.varint();
  if (!in.ok() || n > kMaxRunsPerVersion || n > in.left() / kMinRunBytes) return false;
  out.resize(static_cast<std::size_t>(n));
  for (auto& r : out) {
    r.root.pack = in.varint();
    r.root.offset_bytes = in.varint();
    r.root.tag = in.u32();
    r.entries = in.varint();
    if (!in.ok() || !run_ok(r)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::byte> encode_version(const Version& v) {
  assert(v.runs.size() <= kMaxRunsPerVersion);
  assert(v.parent.size() <= kMaxNameBytes);
  std::vector<std::byte> out;
  out.reserve(128 + v.message.size() + v.parent.size() + v.runs.size() * kMaxRunBytes);
  ByteWriter w(out);
  w.varint(v.branch_id);
  w.varint(v.sequence);
  write_info(w, v);
  w.string(v.parent);
  w.varint(v.pages_changed);
  w.varint(v.bytes_added);
  w.varint(v.active_pack);
  w.varint(v.active_pack_end_bytes);
  w.varint(v.next_pack_number);
  w.varint(v.runs.size());
  for (const auto& r : v.runs) {
    w.varint(r.root.pack);
    w.varint(r.root.offset_bytes);
    w.u32(r.root.tag);
    w.varint(r.entries);
  }
  write_last_info(w, v);
  return out;
}

bool decode_version(std::span<const std::byte> bytes, Version& out) {
  if (bytes.size() > kMaxVersionBytes) return false;
  ByteReader in(bytes);
  Version v;
  v.branch_id = in.varint();
  v.sequence = in.varint();
  if (!read_info(in, v)) return false;
  v.parent = in.string(kMaxNameBytes);
  v.pages_changed = in.varint();
  v.bytes_added = in.varint();
  v.active_pack = in.varint();
  v.active_pack_end_bytes = in.varint();
  v.next_pack_number = in.varint();
  if (!in.ok() || !fields_ok(v) || !read_runs(in, v.runs) || !read_last_info(in, v)) return false;
  out = std::move(v);
  return true;
}

std::vector<std::byte> encode_snapshot_ref(const SnapshotRef& ref, const FileSeal& seal) {
  assert(ref.name.size() <= kMaxNameBytes && ref.branch.size() <= kMaxNameBytes);
  std::vector<std::byte> body;
  ByteWriter b(body);
  b.string(ref.name);
  b.string(ref.branch);
  b.u64(static_cast<std::uint64_t>(ref.created_ns));
  b.varint(ref.order);
  if (ref.signature.has_value()) write_signature(b, *ref.signature);
  b.bytes(encode_version(ref.version));
  assert(kWholeFileHeaderBytes + body.size() + 8 <= kMaxSnapshotRefBytes);
  return encode_whole_file(ref.signature.has_value() ? kSignedRefKind : kRefKind, body, seal);
}

const char* decode_snapshot_ref(std::span<const std::byte> bytes, const FileSeal& seal,
                                SnapshotRef& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  const bool is_signed = has_magic(kSignedRefKind, bytes);
  const WholeFileKind& kind = is_signed ? kSignedRefKind : kRefKind;
  if (const char* problem = open_whole_file(kind, bytes, seal, opened, body)) return problem;
  ByteReader in(body);
  SnapshotRef ref;
  ref.name = in.string(kMaxNameBytes);
  ref.branch = in.string(kMaxNameBytes);
  ref.created_ns = static_cast<std::int64_t>(in.u64());
  ref.order = in.varint();
  if (!in.ok() || ref.order == 0 || ref.order > kMaxSnapshotOrder) return "malformed";
  if (name_problem(ref.name) != nullptr) return "malformed snapshot name";
  if (name_problem(ref.branch) != nullptr) return "malformed branch name";
  if (is_signed && !read_signature(in, ref.signature.emplace())) return "malformed signature";
  if (!decode_version(in.bytes(in.left()), ref.version)) return "malformed version";
  out = std::move(ref);
  return nullptr;
}

SignedFacts signed_facts(const SnapshotRef& ref, const Uuid& store_id) {
  const Version& v = ref.version;
  return {.store_id = store_id,
          .name = ref.name,
          .branch = ref.branch,
          .sequence = v.sequence,
          .region_bytes = v.region_bytes,
          .file_bytes = v.file_bytes.value_or(v.region_bytes),
          .time_ns = v.time_ns,
          .created_ns = ref.created_ns,
          .message = v.message};
}

std::vector<std::byte> encode_signers(const Signers& signers, const FileSeal& seal) {
  assert(!signers.keys.empty() && signers.keys.size() <= kMaxSigners);
  std::vector<std::byte> body;
  ByteWriter b(body);
  b.varint(signers.branch_id);
  b.varint(signers.keys.size());
  for (const auto& key : signers.keys) b.bytes(key);
  return encode_whole_file(kSignersKind, body, seal);
}

const char* decode_signers(std::span<const std::byte> bytes, const FileSeal& seal, Signers& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kSignersKind, bytes, seal, opened, body))
    return problem;
  ByteReader in(body);
  Signers signers;
  signers.branch_id = in.varint();
  const std::uint64_t count = in.varint();
  if (!in.ok() || count == 0 || count > kMaxSigners) return "malformed";
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto key = in.bytes(sizeof(base::Ed25519Public));
    if (!in.ok()) return "malformed";
    std::memcpy(signers.keys.emplace_back().data(), key.data(), key.size());
  }
  if (!in.done()) return "malformed";
  out = std::move(signers);
  return nullptr;
}

std::vector<std::byte> encode_snapshot_order(std::uint64_t order, const FileSeal& seal) {
  assert(order <= kMaxSnapshotOrder);
  std::vector<std::byte> body;
  ByteWriter(body).u64(order);
  return encode_whole_file(kOrderKind, body, seal);
}

const char* decode_snapshot_order(std::span<const std::byte> bytes, const FileSeal& seal,
                                  std::uint64_t& order) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kOrderKind, bytes, seal, opened, body)) return problem;
  ByteReader in(body);
  order = in.u64();
  return in.ok() && in.left() == 0 && order <= kMaxSnapshotOrder ? nullptr : "malformed";
}

std::vector<std::byte> encode_snapshot_note(const SnapshotNote& note, const FileSeal& seal) {
  assert(note.name.size() <= kMaxNameBytes);
  std::vector<std::byte> body;
  ByteWriter b(body);
  b.varint(note.branch_id);
  b.varint(note.epoch);
  b.string(note.name);
  const std::size_t body_bytes =
      kSnapshotNoteBytes - kWholeFileHeaderBytes - seal_bytes(seal.keys != nullptr) - 8;
  assert(body.size() <= body_bytes);
  body.resize(body_bytes);
  return encode_whole_file(kNoteKind, body, seal);
}

const char* decode_snapshot_note(std::span<const std::byte> bytes, const FileSeal& seal,
                                 SnapshotNote& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kNoteKind, bytes, seal, opened, body)) return problem;
  ByteReader in(body);
  SnapshotNote note;
  note.branch_id = in.varint();
  note.epoch = in.varint();
  note.name = in.string(kMaxNameBytes);
  if (!in.ok() || name_problem(note.name) != nullptr) return "malformed";
  out = std::move(note);
  return nullptr;
}

}  // namespace vellum::format
