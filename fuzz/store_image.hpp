// fuzz/store_image.hpp: a small store as values that can be changed one by one, and written to
// files with every checksum and every dependent tag corrected. A change thus
// reaches the code after the checks, like a forger's. Changing the files afterwards tests the
// checks themselves.
#pragma once

#include <string>
#include <vector>

#include "format/journal.hpp"
#include "format/records/page_map.hpp"
#include "format/records/record.hpp"
#include "format/version.hpp"
#include "format/wire/superblock.hpp"
#include "support/disk/memory_fs.hpp"
#include "target.hpp"

namespace vellum::fuzz {

struct Record {
  format::RecordType type = format::RecordType::pages;
  base::Codec codec = base::Compression::none;
  std::uint32_t items = 0;
  Bytes raw;
  std::uint64_t offset_bytes = 0;
  std::uint64_t room_bytes = 0;    // up to the next record: a changed record may grow into it
  std::int64_t raw_bytes_lie = 0;  // added to the header's value
  std::int64_t stored_bytes_lie = 0;
  bool hash = false;
  bool changed = true;
  Bytes sealed;  // valid unless changed
  std::uint32_t tag = 0;
};

struct Pack {
  std::uint64_t name = 0;  // in the file's name
  format::PackHeader header;
  std::vector<Record> records;
  bool sealed = false;  // with an index and a trailer
};

struct Frame {
  format::FrameHeader header;
  Bytes payload;
};

struct Journal {
  std::string directory;  // under branches/
  format::JournalHeader header;
  std::vector<Frame> halves[2];
};

struct Ref {
  std::string file;  // without .ref
  format::Uuid store_id{};
  format::SnapshotRef ref;
};

struct Image {
  const base::StoreKeys* keys = nullptr;  // of an encrypted store
  format::Superblock superblock;
  std::vector<Pack> packs;
  std::vector<Journal> journals;
  std::vector<Ref> refs;

  std::size_t record_count() const;
  Record& record(std::size_t index);  // over all packs; any index, wraps around
  format::RecordRef ref_of(std::size_t index) const;
};

// Two packs, one of them sealed, every type of record and codec, a chain of deltas over two runs;
// two snapshots; a branch whose journal has commits of every type of part, and one without. The
// same bytes every time.
const Image& sample_image();
// The same, encrypted: changes reach the code behind a right key. key_source() opens it.
const Image& encrypted_sample_image();
inline constexpr format::PageNumber kSamplePages = 64;

// Writes the image as a store into the directory `root`, which must not exist.
void write_image(Image& image, test::MemoryFs& fs, const std::string& root);

}  // namespace vellum::fuzz
