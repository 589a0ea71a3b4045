// Structures that end in a checksum of all bytes before it.
#include "decoder_targets.hpp"
#include "format/gc_census.hpp"
#include "format/group.hpp"
#include "format/key_slots.hpp"
#include "format/signature/proof.hpp"
#include "format/version.hpp"
#include "format/working_set.hpp"
#include "seal.hpp"

namespace vellum::fuzz {
namespace {

constexpr std::size_t kStoreIdAt = 16;  // in all of them except the trailer

bool same(View a, View b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

void check_superblock(View bytes) {
  format::Superblock sb;
  if (format::decode_superblock(bytes, sb) != format::SuperblockStatus::ok) return;
  require(same(format::encode_superblock(sb), bytes), "a superblock has one encoding");
}

void check_pack_header(View bytes) {
  format::PackHeader h;
  if (!format::decode_pack_header(bytes, h)) return;
  require(same(format::encode_pack_header(h), bytes.first(format::kPackHeaderBytes)),
          "a pack header has one encoding");
}

void check_pack_trailer(View bytes, std::uint64_t pack, std::uint64_t seed) {
  std::uint64_t offset = 0;
  if (!format::decode_pack_trailer(bytes, pack, seed, offset)) return;
  require(same(format::encode_pack_trailer(pack, offset, seed), bytes),
          "a trailer has one encoding");
}

void check_journal_header(View bytes) {
  const format::Uuid id = uuid_at(bytes, kStoreIdAt);
  format::JournalHeader h, again;
  if (format::decode_journal_header(bytes, id, h) != nullptr) return;
  require(format::decode_journal_header(format::encode_journal_header(h), id, again) == nullptr,
          "a journal header encodes and decodes");
  require(h.branch == again.branch && h.half_bytes == again.half_bytes &&
              h.branch_id == again.branch_id && h.created_ns == again.created_ns,
          "a journal header decodes to itself");
  require(format::name_problem(h.branch) == nullptr, "a journal's branch has a good name");
}

void check_signers(View bytes) {
  const format::Uuid id = uuid_at(bytes, kStoreIdAt);
  format::Signers signers, again;
  if (format::decode_signers(bytes, id, signers) != nullptr) return;
  require(format::decode_signers(format::encode_signers(signers, id), id, again) == nullptr &&
              signers == again,
          "signers decode to themselves");
}

void check_snapshot_ref(View bytes) {
  const format::Uuid id = uuid_at(bytes, kStoreIdAt);
  format::SnapshotRef ref, again;
  if (format::decode_snapshot_ref(bytes, id, ref) != nullptr) return;
  const Bytes encoded = format::encode_snapshot_ref(ref, id);
  require(encoded.size() <= format::kMaxSnapshotRefBytes, "a ref stays below its limit");
  require(format::decode_snapshot_ref(encoded, id, again) == nullptr && ref == again,
          "a snapshot ref decodes to itself");
}

void check_gc_census(View bytes) {
  const format::Uuid id = uuid_at(bytes, kStoreIdAt);
  format::GcCensus census, again;
  if (format::decode_gc_census(bytes, id, census) != nullptr) return;
  for (const auto& part : census.parts) {
    for (const auto root : part.roots) {
      require(root < census.records.size(), "a root is a record of the census");
    }
    for (const auto& r : part.records) {
      require(r.count != 0 && std::uint64_t{r.first} + r.count <= census.records.size(),
              "a range is inside the records of the census");
    }
  }
  const Bytes encoded = format::encode_gc_census(census, id);
  require(format::decode_gc_census(encoded, id, again) == nullptr && census == again,
          "a live set decodes to itself");
}

void check_working_set(View bytes) {
  const format::Uuid id = uuid_at(bytes, kStoreIdAt);
  format::WorkingSet set, again;
  if (format::decode_working_set(bytes, id, set) != nullptr) return;
  constexpr std::uint64_t kPages = format::kMaxRegionBytes / format::kPageBytes;
  for (const auto& r : set.ranges) {
    require(r.count != 0 && r.first < kPages && r.count <= kPages - r.first,
            "a range lies in a region");
  }
  const Bytes encoded = format::encode_working_set(set, id);
  require(encoded.size() <= format::kMaxWorkingSetBytes, "a working set stays below its limit");
  require(format::decode_working_set(encoded, id, again) == nullptr && set == again,
          "a working set decodes to itself");
}

void check_key_slots(View bytes) {
  const format::Uuid id = uuid_at(bytes, kStoreIdAt);
  format::KeySlots slots, again;
  if (format::decode_key_slots(bytes, id, slots) != nullptr) return;
  require(!slots.slots.empty() && slots.slots.size() <= format::kMaxKeySlots,
          "the number of key slots is bounded");
  for (const auto& slot : slots.slots) {
    require(base::cost_ok(slot.cost), "a slot's cost is bounded");
  }
  const Bytes encoded = format::encode_key_slots(slots, id);
  require(format::decode_key_slots(encoded, id, again) == nullptr && slots == again,
          "key slots decode to themselves");
}

void check_group_file(View bytes) {
  format::GroupFile group, again;
  if (format::decode_group_file(bytes, group) != nullptr) return;
  require(format::decode_group_file(format::encode_group_file(group), again) == nullptr &&
              group == again,
          "a group decodes to itself");
}

void check_group_record(View bytes) {
  const format::Uuid id = uuid_at(bytes, kStoreIdAt);
  format::GroupRecord record, again;
  if (format::decode_group_record(bytes, id, record) != nullptr) return;
  require(!record.partitions.empty() && record.number != 0 && record.pin.epoch <= record.epoch,
          "a record has partitions and numbers");
  const Bytes encoded = format::encode_group_record(record, id);
  require(format::decode_group_record(encoded, id, again) == nullptr && record == again,
          "a group's record decodes to itself");
}

// Corrects the length at byte 12 of `bytes`, and the checksum at the end.
void seal_file(Bytes& bytes) {
  constexpr std::size_t kLengthAt = 12;
  if (bytes.size() < kLengthAt + 4) return;
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(bytes.data() + kLengthAt, &length, sizeof length);
  seal_end(bytes, format::checksum_seed(uuid_at(bytes, kStoreIdAt)));
}

}  // namespace

void fuzz_superblock(View input) {
  check_superblock(input);
  Bytes sealed(input.begin(), input.end());
  seal_end(sealed, 0);
  check_superblock(sealed);
}

void fuzz_pack_header(View input) {
  check_pack_header(input);
  Bytes sealed(input.begin(), input.end());
  if (sealed.size() > format::kPackHeaderBytes) sealed.resize(format::kPackHeaderBytes);
  seal_end(sealed, format::checksum_seed(uuid_at(sealed, kStoreIdAt)));
  check_pack_header(sealed);
}

void fuzz_pack_trailer(View input) {
  constexpr std::uint64_t kSeed = 77;
  std::uint64_t pack = 0;
  if (input.size() >= 16) std::memcpy(&pack, input.data() + 8, sizeof pack);
  check_pack_trailer(input, pack, kSeed);
  Bytes sealed(input.begin(), input.end());
  seal_end(sealed, kSeed);
  check_pack_trailer(sealed, pack, kSeed);
  check_pack_trailer(sealed, pack ^ 1, kSeed);
}

void fuzz_journal_header(View input) {
  check_journal_header(input);
  // The zeros that fill the page need not be in the input: a shorter input mutates faster.
  Bytes sealed(input.begin(), input.end());
  sealed.resize(format::kJournalHeaderBytes);
  seal_end(sealed, format::checksum_seed(uuid_at(sealed, kStoreIdAt)));
  check_journal_header(sealed);
}

void fuzz_snapshot_ref(View input) {
  check_snapshot_ref(input);
  Bytes sealed(input.begin(), input.end());
  seal_file(sealed);
  check_snapshot_ref(sealed);
}

void fuzz_signers(View input) {
  check_signers(input);
  Bytes sealed(input.begin(), input.end());
  seal_file(sealed);
  check_signers(sealed);
}

void fuzz_proof(View input) {
  format::PageProof proof, again;
  if (format::decode_proof(input, proof) != nullptr) return;
  require(format::decode_proof(format::encode_proof(proof), again) == nullptr && proof == again,
          "a proof decodes to itself");
  require(proof.pages <= format::kMaxProvenPages && proof.siblings.size() <= 2 * 34,
          "a proof is bounded");
  if (proof.pages > 64) return;
  static_cast<void>(format::root_of_proof(
      proof, std::vector<format::TreeHash>(static_cast<std::size_t>(proof.pages))));
}

void fuzz_gc_census(View input) {
  check_gc_census(input);
  Bytes sealed(input.begin(), input.end());
  seal_file(sealed);
  check_gc_census(sealed);
}

void fuzz_working_set(View input) {
  check_working_set(input);
  Bytes sealed(input.begin(), input.end());
  seal_file(sealed);
  check_working_set(sealed);
}

void fuzz_key_slots(View input) {
  check_key_slots(input);
  Bytes sealed(input.begin(), input.end());
  seal_file(sealed);
  check_key_slots(sealed);
}

void fuzz_group_file(View input) {
  check_group_file(input);
  Bytes sealed(input.begin(), input.end());
  seal_file(sealed);
  check_group_file(sealed);
}

void fuzz_group_record(View input) {
  check_group_record(input);
  Bytes sealed(input.begin(), input.end());
  seal_file(sealed);
  check_group_record(sealed);
}

}  // namespace vellum::fuzz
