// remote/pieces/new_pack.hpp: packs that a store gets from a remote: their files and headers.
#pragma once

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

// How its file begins, while its records are at the places of their references.
std::vector<std::byte> new_pack_header(const store::StoreDirectory& store, std::uint64_t pack);

// Errc::corrupted: a branch of this store has yet to write a pack of this id. REQUIRES: there is no file of it.
void require_not_ours(const store::StoreDirectory& store, const store::Roots& roots,
                      std::uint64_t pack);

// The root of a run names the packs of all its entries, also of those that a newer run hides. No
// piece has anything of a pack whose entries are all hidden, but who opens the version opens each
// pack that is named. Such a pack comes to be here, durable, as a file with a header alone, which is
// what gc leaves of it, too. REQUIRES: the roots of the version's runs can be read, and gc is kept out.
// Errc::corrupted: a branch of this store has yet to write a pack of this id.
void create_empty_packs(store::StoreDirectory& store, const format::Version& version);

// Writes the records as a translated pack and puts it in the place of the file at `path`, durable.
// Records of one reference must not come twice. Errc::busy: somebody has a version open that pins
// the old file. REQUIRES: the caller holds what gc holds, and no writer goes on writing the pack.
void write_translated_pack(store::StoreDirectory& store, std::uint64_t pack,
                           const std::string& path, std::vector<OwnedRecord> records);

class EarlyWriteback {
 public:
  // Bytes up to `end_bytes` were written just now.
  void wrote(base::File& file, std::uint64_t end_bytes, std::uint64_t fresh_bytes) noexcept {
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
