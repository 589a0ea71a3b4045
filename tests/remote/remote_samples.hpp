// One valid value of every object of a remote, for tests and for the seeds of fuzzing.
#pragma once

#include "format/wire/checks.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/whole_file.hpp"
#include "remote/objects/head.hpp"
#include "remote/objects/hold.hpp"
#include "remote/objects/list_on_base.hpp"
#include "remote/objects/piece.hpp"
#include "remote/objects/piece_list.hpp"
#include "remote/objects/remote_file.hpp"

namespace vellum::remote::samples {

template <std::size_t n>
std::array<std::byte, n> filled(int value) {
  std::array<std::byte, n> out;
  out.fill(static_cast<std::byte>(value));
  return out;
}

inline format::Version sample_version() {
  format::Version v;
  v.branch_id = 3;
  v.sequence = 1000;
  v.time_ns = 1'700'000'000'123'456'789;
  v.region_bytes = 1u << 30;
  v.message = "nightly";
  v.parent = "v1";
  v.active_pack = (3ULL << 32) | 2;
  v.active_pack_end_bytes = 4096;
  v.next_pack_number = 3;
  v.runs = {{{(3ULL << 32) | 2, 2048, 0xdeadbeef}, 12}, {{(3ULL << 32) | 1, 640, 0x01020304}, 900}};
  return v;
}

inline Head sample_head() {
  Head head;
  head.number = 7;
  head.generation = 2;
  head.write_id = filled<16>(1);
  head.before = filled<32>(2);
  head.is_witness = true;
  head.earlier_witness = {3, filled<16>(8)};
  RemoteVersion branch;
  branch.is_branch = true;
  branch.ref = {"main", "main", 0, 0, sample_version()};
  branch.epoch = 4;
  branch.writer = filled<16>(3);
  branch.write_id = filled<16>(4);
  branch.encoding = format::Encoding{};
  branch.list = {{}, {{1, filled<32>(5)}, 300}};
  RemoteVersion snapshot;
  snapshot.ref = {"night", "main", 5, 9, sample_version()};
  snapshot.writer = filled<16>(10);
  snapshot.list = {branch.list.own, {{2, filled<32>(9)}, 90}};
  head.versions = {branch, snapshot};
  head.table = {{1, filled<32>(6)}, 900};
  head.gone = {"dawn", "eve"};
  return head;
}

// The same with a signed snapshot.
inline Head sample_head_with_signature() {
  Head head = sample_head();
  format::VersionSignature& s = head.versions[1].ref.signature.emplace();
  s.root = filled<32>(11);
  s.parent_name = "dusk";
  s.parent = filled<32>(12);
  s.number = 2;
  s.key = filled<32>(13);
  s.signature = filled<64>(14);
  return head;
}

// The same with a branch of which this head, and one before it, have objects.
inline Head sample_head_with_objects() {
  Head head = sample_head();
  head.continues_at = 1000;
  head.versions[0].embedded = {{6, 66, 640, 300, 0x0505050505050505}, {7, 77, 1024, 4096, 17}};
  return head;
}

// The head in the form of an older Vellum, which has no witnesses.
inline std::vector<std::byte> as_old_head(std::vector<std::byte> head) {
  constexpr std::size_t kMagicAt = 4, kLengthAt = 12, kWitnessAt = 92, kWitnessBytes = 25;
  for (std::size_t i = 0; i < 3; ++i) head[kMagicAt + i] = static_cast<std::byte>("EAD"[i]);
  const auto at = head.begin() + kWitnessAt;
  head.erase(at, at + kWitnessBytes);
  const auto length = static_cast<std::uint32_t>(head.size());
  std::memcpy(head.data() + kLengthAt, &length, sizeof length);
  const auto seed = format::checksum_seed(format::id_of_whole_file(head));
  head.resize(head.size() - 8);
  format::append_checksum(head, seed);
  return head;
}

inline std::vector<PieceRecord> sample_records() {
  constexpr std::uint64_t kPack1 = (3ULL << 32) | 1, kPack2 = (3ULL << 32) | 2;
  PieceRecord a, b, c;
  a = {format::RecordType::pages, {kPack1, 64, 0x11111111}, 160, {kPack1, 64, 0x11111111}, {}};
  b = {format::RecordType::run_root, {kPack1, 640, 0x22222222}, 72, {kPack1, 512, 0x33333333}, {}};
  c = {format::RecordType::deltas,
       {kPack2, 128, 0x44444444},
       88,
       {kPack2, 96, 0x55555555},
       {{0, 2}, {3, 1}}};
  return {a, b, c};
}

inline VersionPieces sample_list() {
  VersionPieces out;
  out.list = {{{0, filled<32>(7)}, 5000, 200}, {{2, filled<32>(8)}, 9000, 100}};
  const auto records = sample_records();
  out.opening.spans = {spans_of(records), {{(3ULL << 32) | 2, 128, 4096}}};
  out.opening.roots = {records[1]};
  out.opening.root_bytes.resize(static_cast<std::size_t>(records[1].size_bytes), std::byte{5});
  out.in_use = {{{40, 8}, {0, 1}, {4, 100}}, {1, 0}};
  return out;
}

inline BaseList sample_base() { return {filled<32>(5), sample_list()}; }

// A list with an own piece, followed by one of the base.
inline VersionPieces sample_list_on_base() {
  VersionPieces out = sample_list();
  out.list[0] = {{2, filled<32>(9)}, 300, 100};
  return out;
}

inline RemoteFile sample_file() {
  RemoteFile file;
  file.url = "s3://bucket/prefix";
  file.writer = filled<16>(1);
  file.one_writer = true;
  for (const std::uint64_t order : {1U, 2U, 9U, 5U, 4U}) file.replicated.add(order);
  file.branches = {{"main", filled<16>(2), filled<16>(3), filled<16>(9), 4, 5, 6, 7},
                   {"side", filled<16>(7), {}, {}, 8, 9, 10, 1}};
  file.head_number = 300;
  file.head_hash = filled<32>(5);
  return file;
}

inline Hold sample_hold() {
  Hold hold;
  hold.id = filled<16>(7);
  hold.time_ns = 1'700'000'000'000'000'000;
  hold.place = "machine:/local/s";
  hold.pieces = {{0, filled<32>(1)}, {1, filled<32>(2)}, {1, filled<32>(3)}};
  return hold;
}

}  // namespace vellum::remote::samples
