// remote/pieces/new_pack.hpp: packs that a store gets from a remote: their files and headers.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "format/version.hpp"
#include "remote/pieces/merged_record.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/gc/reach/roots.hpp"

namespace vellum::remote {

// The header of a pack whose records are at the places of their references.
std::vector<std::byte> new_pack_header(const store::StoreDirectory& store, std::uint64_t pack);

// A pack cannot have both the record at this place and another one that is, or will be, there. The
// remote has versions of a store, and of a copy of it that went on from the same state.
[[noreturn]] void fail_diverged(const std::string& path, std::uint64_t offset_bytes);

// Errc::corrupted: a branch of this store will write a pack of this id. REQUIRES: the pack has no
// file.
void require_not_ours(const store::StoreDirectory& store, const store::Roots& roots,
                      std::uint64_t pack);

// Creates the version's packs without records, durable, as files with only a header. The root of a
// run names the packs of all its entries, including those that a newer run hides. A fully hidden
// pack has no records at the remote, but opening the version opens it. gc, too, leaves only its
// header. Errc::corrupted: a branch of this store will write a pack of this id. REQUIRES: the roots
// of the version's runs are readable; gc is locked out.
void create_empty_packs(store::StoreDirectory& store, const format::Version& version);

// Writes the records as a translated pack that replaces the file at `path`, durable. A pinned file
// becomes a former file (store/packs/former_file.hpp). REQUIRES: the records include every record
// that a version needs from the old file, and the copies of versions; no two records have the same
// reference; the caller holds gc's lock; no writer has the pack as its active pack.
void write_translated_pack(store::StoreDirectory& store, std::uint64_t pack,
                           const std::string& path, std::vector<OwnedRecord> records);

// Starts writeback of a file while more of it is written, so that the final sync is short.
class EarlyWriteback {
 public:
  // Call it after a write of `fresh_bytes` that ends at `end_bytes`.
  void wrote(base::File& file, std::uint64_t end_bytes, std::uint64_t fresh_bytes) noexcept {
    assert(fresh_bytes <= end_bytes);
    unflushed_bytes_ += fresh_bytes;
    if (unflushed_bytes_ < kEachBytes) return;
    file.begin_flush(0, end_bytes);
    unflushed_bytes_ = 0;
  }

 private:
  static constexpr std::uint64_t kEachBytes = 8u << 20;
  std::uint64_t unflushed_bytes_ = 0;
};

}  // namespace vellum::remote
