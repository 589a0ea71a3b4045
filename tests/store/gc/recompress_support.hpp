// Shared parts of the tests of translated packs.
#pragma once

#include "format/records/translation.hpp"
#include "store/gc/pack_rewriter.hpp"
#include "store/packs/pack_set.hpp"
#include "store/packs/record/record_io.hpp"
#include "store/support.hpp"

namespace vellum::store::test {

// Letters, and repeated parts of earlier text: a higher level finds more of these.
inline void fill_text(Model& model, PageNumber page, std::mt19937_64& random) {
  std::string text;
  while (text.size() < kPageBytes) {
    if (text.size() > 60 && random() % 3 != 0) {
      text += text.substr(random() % (text.size() - 50), 5 + random() % 40);
    } else {
      text += static_cast<char>('a' + random() % 26);
    }
  }
  std::memcpy(model.page(page), text.data(), kPageBytes);
  model.touched.insert(page);
}

inline format::PackHeader pack_header(StoreDirectory& store, std::uint64_t pack) {
  std::array<std::byte, format::kPackHeaderBytes> bytes;
  store.fs().open(store.packs().path_of(pack), base::OpenMode::read_only)->pread(bytes, 0);
  format::PackHeader header;
  EXPECT_TRUE(format::decode_pack_header(bytes, header));
  return header;
}

inline bool is_translated(StoreDirectory& store, std::uint64_t pack) {
  return pack_header(store, pack).translation_offset_bytes != 0;
}

inline std::uint64_t translated_packs(StoreDirectory& store) {
  std::uint64_t n = 0;
  for (const std::uint64_t pack : store.packs().list()) n += is_translated(store, pack) ? 1 : 0;
  return n;
}

inline format::Translation translation_of(StoreDirectory& store, std::uint64_t pack) {
  const auto file = store.fs().open(store.packs().path_of(pack), base::OpenMode::read_only);
  return *read_translation(*file, pack_header(store, pack), store.keys());
}

// Rewrites every pack that has no writer, whether that saves space or not. Returns
// their number. REQUIRES: no gc runs.
inline std::uint64_t translate_all(StoreDirectory& store, int level) {
  const GcExclusive gc(store);
  const Roots roots = read_roots(store);
  LiveSet live_set(store, true);
  reach_roots(store, roots, live_set);
  const Needs needs = needs_of_packs(store, roots, live_set);
  base::ThreadPool pool(1);
  std::uint64_t done = 0;
  for (const auto& [pack, of_pack] : needs) {
    if (roots.settled_bytes(pack).has_value()) continue;
    const auto plan = plan_pack(store, pack, of_pack, live_set, level);
    if (!plan.has_value()) continue;
    PackRewriter rewriter(store, pool, *plan);
    EXPECT_TRUE(rewriter.write([](std::uint64_t) {}));
    if (rewriter.publish(gc)) ++done;
  }
  return done;
}

// Appends a record to a file. REQUIRES: the file's size is a multiple of 8.
inline format::RecordRef append_to_file(StoreDirectory& store, base::File& file, std::uint64_t pack,
                                        format::RecordType type, std::span<const std::byte> raw,
                                        std::size_t items) {
  format::RecordHeader h;
  h.type = type;
  h.pack = pack;
  h.offset_bytes = file.size_bytes();
  h.raw_bytes = static_cast<std::uint32_t>(raw.size());
  h.items = static_cast<std::uint32_t>(items);
  std::vector<std::byte> record;
  format::append_record(record, h, {}, raw, store.checksum_seed());
  file.pwrite(record, h.offset_bytes);
  return {pack, h.offset_bytes, h.tag()};
}

// Replaces the table of a translated pack. Record, header, index and trailer are valid.
inline void replace_translation(StoreDirectory& store, std::uint64_t pack,
                                const std::vector<std::byte>& raw, std::size_t items) {
  const auto file = store.fs().open(store.packs().path_of(pack), base::OpenMode::read_write);
  std::array<std::byte, format::kPackTrailerBytes> trailer;
  std::array<std::byte, format::kRecordHeaderBytes> head;
  std::uint64_t at = 0;
  file->pread(trailer, file->size_bytes() - trailer.size());
  ASSERT_TRUE(format::decode_pack_trailer(trailer, pack, store.checksum_seed(), at));
  file->pread(head, at);
  format::RecordHeader h;
  ASSERT_EQ(format::decode_record_header(head, h), nullptr);
  const auto index =
      read_record_at(*file, {pack, at, h.tag()}, format::RecordType::index, store.checksum_seed());
  const auto table =
      append_to_file(store, *file, pack, format::RecordType::translation, raw, items);
  const auto lines =
      append_to_file(store, *file, pack, format::RecordType::index, index.raw, index.header.items);
  file->pwrite(format::encode_pack_trailer(pack, lines.offset_bytes, store.checksum_seed()),
               file->size_bytes());
  format::PackHeader header = pack_header(store, pack);
  header.translation_offset_bytes = table.offset_bytes;
  header.translation_tag = table.tag;
  file->pwrite(format::encode_pack_header(header), 0);
}

// Sets the table of a translated pack: all slots of some records were freed, and no others.
template <typename Which>
void pretend_given_back(StoreDirectory& store, std::uint64_t pack, const Which& which) {
  format::Translation t = translation_of(store, pack);
  t.dropped.clear();
  for (auto& line : t.lines) {
    line.first_dropped = static_cast<std::uint32_t>(t.dropped.size());
    line.dropped_count = which(line) ? 1 : 0;
    if (line.dropped_count != 0) t.dropped.push_back({0, 32768});
  }
  replace_translation(store, pack, format::encode_translation(t), t.lines.size());
}

}  // namespace vellum::store::test
