// tests/format/samples.hpp: one valid value of every structure, and helpers for bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "format/gc_census.hpp"
#include "format/group.hpp"
#include "format/journal.hpp"
#include "format/key_slots.hpp"
#include "format/newest_snapshots.hpp"
#include "format/records/delta.hpp"
#include "format/records/page_hashes.hpp"
#include "format/records/page_map.hpp"
#include "format/records/record.hpp"
#include "format/records/translation.hpp"
#include "format/signature/proof.hpp"
#include "format/space_note.hpp"
#include "format/tiers.hpp"
#include "format/version.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/types.hpp"
#include "format/working_set.hpp"

namespace vellum::format::samples {

using Bytes = std::vector<std::byte>;

inline Uuid store_id() {
  Uuid id{};
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::byte>(0xa0 + i);
  return id;
}

inline std::uint64_t seed() { return checksum_seed(store_id()); }

// A whole file after a forger's change: its length and its checksum are right again.
inline Bytes sealed(Bytes bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(bytes.data() + 12, &length, sizeof length);
  bytes.resize(bytes.size() - 8);
  append_checksum(bytes, seed());
  return bytes;
}

inline Superblock superblock() {
  Superblock sb;
  sb.store_id = store_id();
  sb.created_ns = 0x1122334455667788;
  sb.block_bytes = 128u << 10;
  sb.compression = base::Compression::lz4;
  sb.compression_level = 7;
  sb.pack_bytes = 0x1234567;
  sb.journal_half_bytes = 0x123000;
  return sb;
}

inline GcCensus gc_census() {
  constexpr std::uint64_t kPack1 = (3ULL << 32) | 1, kPack2 = (3ULL << 32) | 2;
  GcCensus c;
  c.records = {{kPack1, 64, 0x11111111},
               {kPack1, 640, 0x22222222},
               {kPack1, 8192, 0x33333333},
               {kPack2, 128, 0x44444444},
               {kPack2, 2048, 0x55555555}};
  c.size_lines = {72, 30, 200, 0, 9};
  c.parts = {{{2, 1}, {{0, 3}}, {kPack1}}, {{4}, {{0, 1}, {3, 2}}, {kPack1, kPack2}}};
  return c;
}

// A slot of each kind.
inline KeySlots key_slots() {
  KeySlots out;
  for (std::uint32_t i = 0; i < 4; ++i) {
    StoredKeySlot& slot = out.slots.emplace_back();
    slot.number = 2 * i + 1;
    slot.kind = static_cast<KeySlotKind>(i + 1);
    slot.label = i == 0 ? "people" : "";
    if (slot.kind == KeySlotKind::recipient) {
      slot.recipient.fill(std::byte{0x11});
      slot.ephemeral.fill(std::byte{0x22});
    } else {
      slot.salt.fill(std::byte{0x33});
    }
    slot.wrapped.fill(std::byte{0x44});
  }
  out.next_number = 9;
  return out;
}

inline WorkingSet working_set() {
  WorkingSet set;
  set.owner = {3, 1000, 1700000000123456789};
  set.ranges = {{0, 16}, {4096, 32}, {512, 16}, {16, 1}, {(1ULL << 34) - 3, 3}};
  return set;
}

inline SpaceNote space_note() { return {80u << 20, 76'940'498}; }

inline NewestSnapshots newest_snapshots() {
  return {300,
          {1'700'000'000'123'456'000, 1'700'000'000'120'000'001, 4711},
          false,
          true,
          {{300, "c"}, {298, "a"}, {298, "latest+1+b"}}};
}

inline Tiers tiers() {
  Tiers out;
  out.home_limit_bytes = 1ULL << 30;
  out.directories.resize(2);
  out.directories[0].kind = TierKind::archive;
  out.directories[0].id.fill(std::byte{0x11});
  out.directories[0].path = "/big/vellum";
  out.directories[1].kind = TierKind::cache;
  out.directories[1].id.fill(std::byte{0x22});
  out.directories[1].limit_bytes = 64u << 20;
  out.directories[1].path = "/nvme";
  return out;
}

inline GroupFile group_file() { return {store_id(), 1700000000123456789, 3}; }

inline GroupRecord group_record() {
  GroupRecord record;
  record.number = 300;
  record.epoch = 4;
  record.pin = {3, 17};
  record.created_ns = 1700000000123456789;
  record.name = "step-1000";
  record.message = "nightly";
  record.partitions.resize(3);
  for (std::size_t i = 0; i < 3; ++i) {
    GroupPartition& p = record.partitions[i];
    p.store_id.fill(static_cast<std::byte>(0x11 * (i + 1)));
    p.digest.fill(static_cast<std::byte>(0xa0 + i));
    p.order = 40 + i;
    p.sequence = 1000 + i;
    p.region_bytes = 1u << 30;
    p.bytes_written = 5000 * i;
    p.store = i == 2 ? "/local/store-2" : "../store-" + std::to_string(i);
    p.branch = "main";
    p.host = i == 0 ? "node7" : "node8";
  }
  return record;
}

inline Version version() {
  Version v;
  v.branch_id = 3;
  v.sequence = 1000;
  v.time_ns = 1700000000123456789;
  v.region_bytes = 1ULL << 30;
  v.base_address = 0x7f0000000000;
  v.message = "nightly";
  v.parent = "v1";
  v.pages_changed = 77;
  v.bytes_added = 90000;
  v.active_pack = (3ULL << 32) | 2;
  v.active_pack_end_bytes = 4096;
  v.next_pack_number = 3;
  v.runs = {{{(3ULL << 32) | 2, 2048, 0xdeadbeef}, 12}, {{(3ULL << 32) | 1, 640, 0x01020304}, 900}};
  return v;
}

inline SnapshotRef snapshot_ref() {
  return {"release-1", "main", 1700000001000000000, 300, version()};
}

inline SnapshotRef signed_snapshot_ref() {
  SnapshotRef ref = snapshot_ref();
  VersionSignature& s = ref.signature.emplace();
  s.root.fill(std::byte{1});
  s.parent_name = "release-0";
  s.parent.fill(std::byte{2});
  s.number = 300;
  s.key.fill(std::byte{3});
  s.signature.fill(std::byte{4});
  return ref;
}

inline PageProof proof() {
  PageProof out;
  out.name = "release-1";
  out.region_bytes = 20 * kPageBytes;
  out.first_page = 5;
  out.pages = 2;
  out.context.fill(std::byte{5});
  out.signature.fill(std::byte{6});
  out.siblings.resize(sibling_places(out.region_bytes, 5, 2).size(), TreeHash{std::byte{7}});
  return out;
}

inline Signers signers() { return {7, {{std::byte{1}}, {std::byte{2}}}}; }

inline JournalHeader journal_header() {
  JournalHeader h;
  h.store_id = store_id();
  h.branch_id = 0x0102030405060708;
  h.created_ns = 0x1817161514131211;
  h.half_bytes = 0x00200000;
  h.branch = "main";
  return h;
}

inline CommitBody commit_body() {
  CommitBody b;
  b.time_ns = 1700000000123456789;
  b.region_bytes = 1ULL << 20;
  b.base_address = 0x10000;
  b.message = "m";
  CommitPart pages;
  pages.type = PartType::pages;
  pages.codec = base::Compression::zstd;
  pages.raw_bytes = 2 * kPageBytes;
  pages.pages = {5, 9};
  pages.stored = {std::byte{0xaa}, std::byte{0xbb}};
  CommitPart deltas;
  deltas.type = PartType::deltas;
  deltas.raw_bytes = 3;
  deltas.stored = {std::byte{1}, std::byte{2}, std::byte{3}};
  CommitPart zeros;
  zeros.type = PartType::zeros;
  zeros.pages = {10, 11, 200};
  b.parts = {pages, deltas, zeros};
  return b;
}

// Entries of every kind: an extent, a chain of three, a zero extent, records used again.
inline std::vector<MapEntry> map_entries() {
  const RecordRef pages{(3ULL << 32) | 2, 64, 0x11111111};
  const RecordRef newer{(3ULL << 32) | 2, 8192, 0x22222222};
  const RecordRef older{(3ULL << 32) | 1, 640, 0x33333333};
  return {
      {16, 16, 0, PageKind::base, 0, pages},   {40, 1, 0, PageKind::delta, 2, newer},
      {40, 1, 7, PageKind::delta, 1, older},   {40, 1, 16, PageKind::base, 0, pages},
      {41, 1, 1, PageKind::delta, 1, newer},   {50, 1000, 0, PageKind::zero, 0, {}},
      {1050, 1, 8, PageKind::delta, 3, older},
  };
}

inline std::vector<PageHash> page_hashes() {
  const RecordRef a{0x100000001, 64, 0x11111111}, b{0x100000001, 4096, 0x22222222},
      c{0x200000007, 128, 0x33333333};
  return {{a, 0, 7}, {a, 15, 0xffffffff}, {b, 255, 1}, {c, 3, 9}, {a, 2, 4}};
}

inline RunRoot run_root() {
  return {{{0, 99, 64, 0x11111111, 100},
           {100, 5000, 4096, 0x22222222, 1024},
           {70000, 70000, 512, 0x33333333, 1}},
          {(3ULL << 32) | 1, (3ULL << 32) | 2}};
}

inline std::vector<IndexLine> index_lines() {
  return {{RecordType::pages, 64, 100, 4096, 1, 0x11111111},
          {RecordType::deltas, 224, 50, 60, 2, 0x22222222},
          {RecordType::run_root, 336, 20, 20, 1, 0x33333333}};
}

inline constexpr std::uint64_t kTranslationAt = 400;  // in the pack

inline Translation translation() {
  return {19,
          {{64, 64, 0x11111111, 0x44444444, 0, 2},
           {224, 184, 0x22222222, 0x55555555, 2, 0},
           {8416, 280, 0x33333333, 0x66666666, 2, 1}},
          {{0, 1}, {3, 13}, {5, 2}}};
}

inline DeltaBatch delta_batch() {
  Bytes old_content(kPageBytes), now(kPageBytes);
  DeltaBatch batch;
  now[8] = std::byte{0x10};
  now[9] = std::byte{0x11};
  now[200] = std::byte{0x12};
  batch.add_difference(7, old_content.data(), now.data());
  now[4095] = std::byte{0x13};
  batch.add_difference(300, old_content.data(), now.data());
  return batch;
}

inline Bytes record(RecordHeader& h) {
  Bytes out;
  const Bytes hash(32, std::byte{0x5a});
  const Bytes payload{std::byte{1}, std::byte{2}, std::byte{3}};
  h.type = RecordType::pages;
  h.codec = base::Compression::zstd;
  h.pack = 0x0000000300000002;
  h.offset_bytes = 0x1122334455 * 8;
  h.raw_bytes = 2 * kPageBytes;
  h.items = 2;
  append_record(out, h, hash, payload, seed());
  return out;
}

inline Bytes text(const std::string& s) {
  const auto b = std::as_bytes(std::span(s));
  return Bytes(b.begin(), b.end());
}

inline std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 8; ++i) {
    v |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  return v;
}

// A page of bytes that differ from each other and are rarely zero.
inline Bytes random_page(std::mt19937_64& random) {
  Bytes page(kPageBytes);
  for (auto& b : page) b = static_cast<std::byte>(random());
  return page;
}

}  // namespace vellum::format::samples
