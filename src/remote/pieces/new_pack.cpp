#include "remote/pieces/new_pack.hpp"

#include <algorithm>
#include <cassert>
#include <set>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "format/records/record.hpp"
#include "format/records/translation.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/pack_rewriter.hpp"
#include "store/packs/encode/payload.hpp"
#include "store/packs/former_file.hpp"
#include "store/page_map/run_reader.hpp"

namespace vellum::remote {

std::vector<std::byte> new_pack_header(const store::StoreDirectory& store, std::uint64_t pack) {
  return format::encode_pack_header(
      {store.superblock().store_id, pack, pack >> 32, 0, 0, store.is_encrypted()});
}

void fail_diverged(const std::string& path, std::uint64_t offset_bytes) {
  fail(
      Errc::corrupted,
      "{} at byte {}: the remote has two records for one place: they are of two copies of one "
      "store "
      "that have diverged. `vellum clone URL DIRECTORY VERSION` gets each version by itself; after "
      "`vellum rm URL VERSION` and `vellum gc URL`, the others come together",
      path, offset_bytes);
}

void require_not_ours(const store::StoreDirectory& store, const store::Roots& roots,
                      std::uint64_t pack) {
  if (roots.settled_bytes(pack) != 0) return;
  fail(Errc::corrupted,
       "{}: this store will write another pack {:016x} than the remote has: they are two copies of "
       "one store that have diverged. Clone the version into a new directory",
       store.path(), pack);
}

namespace {

std::set<std::uint64_t> missing_packs(store::StoreDirectory& store,
                                      const format::Version& version) {
  std::set<std::uint64_t> out;
  for (const format::RunRef& ref : version.runs) {
    for (const std::uint64_t pack : store::read_run_root(store, ref).packs) {
      if (store.packs().is_remote(pack) || store.fs().exists(store.packs().path_of(pack))) continue;
      out.insert(pack);
    }
  }
  return out;
}

}  // namespace

void create_empty_packs(store::StoreDirectory& store, const format::Version& version) {
  const auto missing = missing_packs(store, version);
  if (missing.empty()) return;
  const store::Roots roots = store::read_roots(store);
  for (const std::uint64_t pack : missing) {
    require_not_ours(store, roots, pack);
    const std::string path = store.packs().path_of(pack);
    base::publish_file(store.fs(), store.tmp_directory(), base::parent_of(path),
                       path.substr(path.rfind('/') + 1), new_pack_header(store, pack), false);
  }
  store.packs().refresh();
}

namespace {

using format::RecordHeader;
using format::RecordType;

class TranslatedPackWriter {
 public:
  TranslatedPackWriter(const store::StoreDirectory& store, std::uint64_t pack, base::File& file)
      : store_(store), pack_(pack), file_(file) {}

  void put(const OwnedRecord& owned) {
    RecordHeader header;
    const auto opened = opened_record(store_, owned, header);
    const auto hash = format::record_hash(opened, header);
    const auto stored = format::record_payload(opened, header);
    const std::uint32_t new_tag = append(header, hash, stored);
    index_.push_back({header.type, header.offset_bytes, header.stored_bytes, header.raw_bytes,
                      header.items, new_tag});
    const PieceRecord& r = owned.record;
    translation_.lines.push_back({r.ref.offset_bytes, header.offset_bytes, r.ref.tag, new_tag,
                                  static_cast<std::uint32_t>(translation_.dropped.size()),
                                  static_cast<std::uint32_t>(r.dropped.size())});
    translation_.dropped.insert(translation_.dropped.end(), r.dropped.begin(), r.dropped.end());
  }

  // Translation, index and trailer, then the header, which names the translation.
  void end() {
    RecordHeader table, index;
    append_metadata(RecordType::translation, format::encode_translation(translation_),
                    translation_.lines.size(), table);
    append_metadata(RecordType::index, format::encode_index(index_), index_.size(), index);
    const auto trailer =
        format::encode_pack_trailer(pack_, index.offset_bytes, store_.checksum_seed());
    file_.pwrite(trailer, end_);
    file_.pwrite(
        format::encode_pack_header({store_.superblock().store_id, pack_, pack_ >> 32,
                                    table.offset_bytes, table.tag(), store_.is_encrypted()}),
        0);
    file_.sync_data();
  }

 private:
  std::uint32_t append(RecordHeader& header, std::span<const std::byte> hash,
                       std::span<const std::byte> stored) {
    header.pack = pack_;
    header.offset_bytes = end_;
    buffer_.clear();
    format::append_record(buffer_, header, hash, stored, store_.record_seal());
    file_.pwrite(buffer_, end_);
    end_ += buffer_.size();
    return header.tag();
  }

  void append_metadata(RecordType type, std::vector<std::byte> raw, std::size_t items,
                       RecordHeader& header) {
    if (raw.size() > format::kMaxTranslationRawBytes) {
      fail(Errc::unsupported, "{}: too many records for a translated pack", file_.path());
    }
    base::Compressor compressor;
    const auto payload = store::encode_payload(compressor, base::Compression::zstd,
                                               store::kMetadataZstdLevel, std::move(raw));
    header = {};
    header.type = type;
    header.codec = payload.codec;
    header.raw_bytes = payload.raw_bytes;
    header.items = static_cast<std::uint32_t>(items);
    append(header, {}, payload.stored);
  }

  const store::StoreDirectory& store_;
  const std::uint64_t pack_;
  base::File& file_;
  std::uint64_t end_ = format::kPackHeaderBytes;
  std::vector<std::byte> buffer_;
  format::Translation translation_;
  std::vector<format::IndexLine> index_;
};

// With the exclusive lock on names, no process can pin a byte of the pack.
void replace_pack(store::StoreDirectory& store, std::uint64_t pack, const std::string& from,
                  const std::string& path) {
  {
    const store::NamesExclusive names(store);
    store::keep_pinned_file(store.fs(), pack, path);
    store.fs().rename(from, path);
  }
  store.fs().sync_directory(base::parent_of(path));
  store.packs().refresh();
}

}  // namespace

void write_translated_pack(store::StoreDirectory& store, std::uint64_t pack,
                           const std::string& path, std::vector<OwnedRecord> records) {
  std::sort(records.begin(), records.end(),
            [](const OwnedRecord& a, const OwnedRecord& b) { return a.record.ref < b.record.ref; });
  assert(std::ranges::adjacent_find(
             records, {}, [](const OwnedRecord& r) { return r.record.ref; }) == records.end());
  const std::string directory = base::parent_of(path);
  const std::string tmp =
      (directory == store.packs_directory() ? store.tmp_directory() : directory) + "/" +
      store::rewritten_file_name(pack);
  if (store.fs().exists(tmp)) store.fs().unlink(tmp);
  try {
    const auto file = store.fs().open(tmp, base::OpenMode::create_new);
    TranslatedPackWriter writer(store, pack, *file);
    for (const OwnedRecord& record : records) writer.put(record);
    writer.end();
    replace_pack(store, pack, tmp, path);
  } catch (...) {
    base::unlink_quietly(store.fs(), tmp);
    throw;
  }
}

}  // namespace vellum::remote
