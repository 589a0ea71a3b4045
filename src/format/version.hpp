// format/version.hpp: an encoded Version, and the ref file that names one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/signature/version_signature.hpp"
#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

std::vector<std::byte> encode_version(const Version& v);
// Checks every bound (region size, run count, name and message lengths, pack end). A version has no
// checksum of its own: the ref, frame or record that contains it has one.
bool decode_version(std::span<const std::byte> bytes, Version& out);

// A snapshot: snapshots/<name>.ref, written once and never changed.
struct SnapshotRef {
  std::string name;    // must equal the file's name, so a copied or renamed ref is refused
  std::string branch;  // name of the branch it was taken on, at that time
  std::int64_t created_ns = 0;
  // Larger than the order of every earlier snapshot of the store, whatever the clock reads; 1 or
  // more in a file. 0: StoreDirectory::create_snapshot() assigns the next order.
  std::uint64_t order = 0;
  Version version;
  std::optional<VersionSignature> signature = {};
  bool operator==(const SnapshotRef&) const = default;
};
// The facts of a ref that its signature covers.
SignedFacts signed_facts(const SnapshotRef& ref, const Uuid& store_id);
inline constexpr std::size_t kMaxSnapshotRefBytes = 64u << 10;
inline constexpr std::uint64_t kMaxSnapshotOrder = INT64_MAX;

std::vector<std::byte> encode_snapshot_ref(const SnapshotRef& ref, const FileSeal& seal);
// nullptr, or a description of the error.
const char* decode_snapshot_ref(std::span<const std::byte> bytes, const FileSeal& seal,
                                SnapshotRef& out);

// snapshots.order: the largest order that was assigned to a snapshot. It is overwritten in place and
// fits into a sector, which the medium writes as a whole.
inline constexpr std::size_t kSnapshotOrderBytes = 48;
inline std::size_t snapshot_order_bytes(const FileSeal& seal) noexcept {
  return kSnapshotOrderBytes + seal_bytes(seal.keys != nullptr);
}
std::vector<std::byte> encode_snapshot_order(std::uint64_t order, const FileSeal& seal);
// nullptr, or a description of the error. `order` may be 0: no snapshot was ever created.
const char* decode_snapshot_order(std::span<const std::byte> bytes, const FileSeal& seal,
                                  std::uint64_t& order);

// branches/<name>/signers: the public keys of a branch whose snapshots have to be signed.
struct Signers {
  std::uint64_t branch_id = 0;
  std::vector<base::Ed25519Public> keys;  // at least one
  bool operator==(const Signers&) const = default;
};
inline constexpr std::size_t kMaxSigners = 64;
inline constexpr std::size_t kMaxSignersBytes = 4096;

std::vector<std::byte> encode_signers(const Signers& signers, const FileSeal& seal);
// nullptr, or a description of the error.
const char* decode_signers(std::span<const std::byte> bytes, const FileSeal& seal, Signers& out);

// branches/<name>/snapshot: the snapshot with which a branch's next journal epoch starts. It is
// overwritten in place before the ref is written, and is valid only for the epoch that it names.
struct SnapshotNote {
  std::uint64_t branch_id = 0;
  std::uint64_t epoch = 0;  // of the journal when the note was written: the epoch before the next
  std::string name;
  bool operator==(const SnapshotNote&) const = default;
};
inline constexpr std::size_t kSnapshotNoteBytes = 512;  // a sector

std::vector<std::byte> encode_snapshot_note(const SnapshotNote& note, const FileSeal& seal);
// nullptr, or a description of the error: a crash may have torn it.
const char* decode_snapshot_note(std::span<const std::byte> bytes, const FileSeal& seal,
                                 SnapshotNote& out);

}  // namespace vellum::format
