#include "store/gc/pack_rewriter.hpp"

#include <array>
#include <cassert>
#include <optional>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/record_encoder.hpp"
#include "store/packs/encode/payload.hpp"

namespace vellum::store {

using format::IndexLine;
using format::RecordHeader;
using format::RecordType;

namespace {

constexpr std::string_view kRewriteSuffix = ".rewrite";
constexpr std::size_t kRewriteBufferBytes = 1u << 20;
// Bytes per batch: enough for all workers, few enough for frequent progress reports and for memory.
constexpr std::uint64_t kBatchBytes = 4u << 20, kMaxBatchBytes = 512u << 20;

std::string working_directory(const StoreDirectory& store, const std::string& target) {
  const std::string directory = base::parent_of(target);
  return directory == store.packs_directory() ? store.tmp_directory() : directory;
}

}  // namespace

std::string rewritten_file_name(std::uint64_t pack) {
  return pack_file_name(pack) + std::string(kRewriteSuffix);
}

bool is_rewritten_file_name(const std::string& name) {
  std::uint64_t pack = 0;
  return name.ends_with(kRewriteSuffix) &&
         parse_pack_file_name(name.substr(0, name.size() - kRewriteSuffix.size()), pack);
}

struct PackRewriter::Impl {
  StoreDirectory& store;
  base::ThreadPool& pool;
  const PackPlan& plan;
  std::string target;                // the path of the pack, before and after
  std::string path;                  // of the new file until publish(); on the same file system
  std::unique_ptr<base::File> file;  // null: not created, or published
  std::vector<RecordEncoder> encoders;
  std::vector<std::byte> buffer;  // the last bytes before `end`
  std::uint64_t end = 0;
  format::Translation translation;
  std::vector<IndexLine> index;

  Impl(StoreDirectory& s, base::ThreadPool& p, const PackPlan& pl)
      : store(s),
        pool(p),
        plan(pl),
        target(s.packs().path_of(pl.pack)),
        path(working_directory(s, target) + "/" + rewritten_file_name(pl.pack)),
        encoders(p.workers() + 1) {}

  LoadedRecord load(const PlannedRecord& record) const;
  // nullopt: the record is unreadable, no valid version needs it, and the new file omits it.
  std::optional<EncodedPayload> encode(const PlannedRecord& planned, RecordEncoder& encoder) const;
  void put(const PlannedRecord& planned, const EncodedPayload& record);
  format::RecordRef append(RecordHeader& h, std::span<const std::byte> hash,
                           std::span<const std::byte> stored);
  void append_metadata(RecordType type, std::vector<std::byte> raw, std::size_t items,
                       format::RecordRef& ref);
  void write_out();
  void write_records(const std::function<void(std::uint64_t)>& progress);
  bool write_end();
  void compare() const;
  void compare_index(const base::File& written) const;
};

LoadedRecord PackRewriter::Impl::load(const PlannedRecord& record) const {
  LoadedRecord out = read_record_at(*store.packs().find(plan.pack), record.place, record.type,
                                    store.record_seal());
  // The plan may be based on the pack's index.
  if (out.header.items != record.items || out.header.raw_bytes != record.raw_bytes) {
    fail(Errc::corrupted, "{}: the record is not the one that the pack's index names",
         record_place(store, plan.pack, record.place.offset_bytes));
  }
  return out;
}

std::optional<EncodedPayload> PackRewriter::Impl::encode(const PlannedRecord& planned,
                                                         RecordEncoder& encoder) const {
  try {
    return encoder.encode(load(planned), planned, plan.encode_level, plan.recompress);
  } catch (const Error& e) {
    // The new file omits a partly lost record that only stale versions need.
    if (planned.durable || e.code() != Errc::corrupted) throw;
    return std::nullopt;
  }
}

void PackRewriter::Impl::write_out() {
  if (buffer.empty()) return;
  assert(buffer.size() <= end);
  file->pwrite(buffer, end - buffer.size());
  buffer.clear();
}

format::RecordRef PackRewriter::Impl::append(RecordHeader& h, std::span<const std::byte> hash,
                                             std::span<const std::byte> stored) {
  h.pack = plan.pack;
  h.offset_bytes = end;
  const std::size_t before = buffer.size();
  format::append_record(buffer, h, hash, stored, store.record_seal());
  end += buffer.size() - before;
  assert(end % format::kRecordAlignBytes == 0);
  if (buffer.size() >= kRewriteBufferBytes) write_out();
  return {h.pack, h.offset_bytes, h.tag()};
}

void PackRewriter::Impl::put(const PlannedRecord& planned, const EncodedPayload& record) {
  assert(planned.ref.pack == plan.pack);
  RecordHeader h;
  h.type = planned.type;
  h.codec = record.codec;
  h.raw_bytes = record.raw_bytes;
  h.items = planned.items;
  const format::RecordRef now = append(h, record.hash, record.stored);
  index.push_back({h.type, h.offset_bytes, h.stored_bytes, h.raw_bytes, h.items, h.tag()});
  translation.lines.push_back({planned.ref.offset_bytes, now.offset_bytes, planned.ref.tag, now.tag,
                               static_cast<std::uint32_t>(translation.dropped.size()),
                               static_cast<std::uint32_t>(planned.dropped.size())});
  translation.dropped.insert(translation.dropped.end(), planned.dropped.begin(),
                             planned.dropped.end());
}

void PackRewriter::Impl::write_records(const std::function<void(std::uint64_t)>& progress) {
  std::vector<std::optional<EncodedPayload>> encoded;
  for (std::size_t first = 0; first < plan.records.size();) {
    std::size_t count = 0;
    for (std::uint64_t bytes = 0; first + count < plan.records.size();) {
      if (bytes >= (count < encoders.size() ? kMaxBatchBytes : kBatchBytes)) break;
      bytes += plan.records[first + count++].raw_bytes;
    }
    encoded.resize(count);
    pool.parallel_for(count, [&](std::size_t i, std::size_t worker) {
      encoded[i] = encode(plan.records[first + i], encoders[worker]);
    });
    for (std::size_t i = 0; i < count; ++i) {
      if (encoded[i].has_value()) put(plan.records[first + i], *encoded[i]);
    }
    first += count;
    progress(plan.records[first - 1].place.offset_bytes);
  }
}

void PackRewriter::Impl::append_metadata(RecordType type, std::vector<std::byte> raw,
                                         std::size_t items, format::RecordRef& ref) {
  base::Compressor compressor;
  const auto payload =
      encode_payload(compressor, base::Compression::zstd, kMetadataZstdLevel, std::move(raw));
  RecordHeader h;
  h.type = type;
  h.codec = payload.codec;
  h.raw_bytes = payload.raw_bytes;
  h.items = static_cast<std::uint32_t>(items);
  ref = append(h, {}, payload.stored);
}

// Writes translation, index and trailer, then the header, which names the translation.
bool PackRewriter::Impl::write_end() {
  auto table = format::encode_translation(translation);
  auto lines = format::encode_index(index);
  if (table.size() > format::kMaxTranslationRawBytes || lines.size() > format::kMaxRecordRawBytes) {
    return false;
  }
  format::RecordRef at, index_at;
  append_metadata(RecordType::translation, std::move(table), translation.lines.size(), at);
  append_metadata(RecordType::index, std::move(lines), index.size(), index_at);
  const auto trailer =
      format::encode_pack_trailer(plan.pack, index_at.offset_bytes, store.checksum_seed());
  buffer.insert(buffer.end(), trailer.begin(), trailer.end());
  end += trailer.size();
  write_out();
  file->pwrite(format::encode_pack_header({store.superblock().store_id, plan.pack, plan.pack >> 32,
                                           at.offset_bytes, at.tag, store.is_encrypted()}),
               0);
  file->sync_data();
  return true;
}

// Reads the new file like any reader, and compares it with the old one.
void PackRewriter::Impl::compare() const {
  const auto written = store.fs().open(path, base::OpenMode::read_only);
  std::array<std::byte, format::kPackHeaderBytes> bytes;
  written->pread(bytes, 0);
  format::PackHeader header;
  if (!format::decode_pack_header(bytes, header) || header.pack != plan.pack) {
    fail(Errc::corrupted, "{}: the header does not read back", path);
  }
  const auto table = read_translation(*written, header, store.keys());
  if (table == nullptr || *table != translation) {
    fail(Errc::corrupted, "{}: the translation does not read back", path);
  }
  compare_index(*written);
  pool.parallel_for(plan.records.size(), [&](std::size_t i, std::size_t) {
    const PlannedRecord& planned = plan.records[i];
    const format::TranslationLine* line = table->find(planned.ref.offset_bytes);
    if (line == nullptr && !planned.durable) return;
    if (line == nullptr) {
      fail(Errc::corrupted, "{}: the translation lacks a needed record", path);
    }
    const LoadedRecord now =
        read_record_at(*written, {plan.pack, line->new_offset_bytes, line->new_tag}, planned.type,
                       store.record_seal());
    if (!same_content(load(planned), now, planned)) {
      fail(Errc::corrupted, "{} at byte {}: the content differs from the old record's", path,
           line->new_offset_bytes);
    }
  });
}

void PackRewriter::Impl::compare_index(const base::File& written) const {
  std::array<std::byte, format::kPackTrailerBytes> trailer;
  std::array<std::byte, format::kRecordHeaderBytes> head;
  written.pread(trailer, written.size_bytes() - trailer.size());
  std::uint64_t at = 0;
  RecordHeader h;
  std::vector<IndexLine> lines;
  bool good = format::decode_pack_trailer(trailer, plan.pack, store.checksum_seed(), at);
  if (good) {
    written.pread(head, at);
    good = format::decode_record_header(head, h) == nullptr &&
           format::decode_index(read_record_at(written, {plan.pack, at, h.tag()}, RecordType::index,
                                               store.record_seal())
                                    .raw,
                                lines) &&
           lines == index;
  }
  if (!good) fail(Errc::corrupted, "{}: the index does not read back", path);
}

PackRewriter::PackRewriter(StoreDirectory& store, base::ThreadPool& pool, const PackPlan& plan)
    : impl_(std::make_unique<Impl>(store, pool, plan)) {}

PackRewriter::~PackRewriter() {
  if (impl_->file == nullptr) return;
  try {
    impl_->store.fs().unlink(impl_->path);
  } catch (const std::exception&) {
    // The next gc removes it.
  }
}

bool PackRewriter::write(const std::function<void(std::uint64_t)>& progress) {
  Impl& w = *impl_;
  assert(w.file == nullptr && w.end == 0);  // called once
  assert(w.plan.level >= 0 && w.plan.level <= format::kMaxTranslationLevel);
  w.file = w.store.fs().open(w.path, base::OpenMode::create_new);
  w.translation.level = static_cast<std::uint8_t>(w.plan.level);
  w.buffer.reserve(kRewriteBufferBytes + (kRewriteBufferBytes >> 1));
  w.buffer.resize(format::kPackHeaderBytes);
  w.end = w.buffer.size();
  w.write_records(progress);
  if (!w.write_end()) return false;
  w.compare();
  return true;
}

std::uint64_t PackRewriter::new_bytes() const noexcept { return impl_->end; }

bool PackRewriter::publish(const GcExclusive& /*gc*/) {
  Impl& w = *impl_;
  assert(w.file != nullptr && w.buffer.empty());
  {
    // A process that pins a byte holds the names. Every pin is therefore visible now, and a process
    // that pins a byte later finds the new file.
    const NamesExclusive names(w.store);
    const auto old = w.store.fs().open(w.target, base::OpenMode::read_only);
    if (!old->pinned_bytes().empty()) return false;
    w.store.fs().rename(w.path, w.target);
    w.file.reset();
  }
  w.store.packs().refresh();
  w.store.fs().sync_directory(base::parent_of(w.target));
  return true;
}

}  // namespace vellum::store
