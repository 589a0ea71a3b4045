// These stores have right checksums and wrong content, as of a forger or a defective writer.
// Reading is refused with the reason, in the fault handler as well, and verify reports it.
#include "base/bytes/sha256.hpp"
#include "format/records/delta.hpp"
#include "format/records/page_map.hpp"
#include "format/version.hpp"
#include "format/wire/superblock.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/journal/journal_writer.hpp"
#include "store/journal/read_journal.hpp"
#include "store/support.hpp"
#include "support/disk/memory_fs.hpp"

namespace vellum::store::test {
namespace {

using base::Codec;
using base::Compression;
using base::Filter;
using format::MapEntry;
using format::PageKind;
using format::RecordRef;
using format::RecordType;

constexpr std::uint64_t kBranchId = 9;
constexpr std::uint64_t kForgedPages = 64;
using Bytes = std::vector<std::byte>;

// A pack, record by record.
class Pack {
 public:
  Pack(const StoreDirectory& store, std::uint64_t number)
      : seed_(store.checksum_seed()), id_(kBranchId << 32 | number) {
    bytes_ = format::encode_pack_header({store.superblock().store_id, id_, kBranchId});
  }
  RecordRef add(RecordType type, std::uint32_t raw_bytes, const Bytes& stored, std::uint32_t items,
                Codec codec = Compression::none, const Bytes& hash = {}) {
    format::RecordHeader h;
    h.type = type;
    h.codec = codec;
    h.pack = id_;
    h.offset_bytes = bytes_.size();
    h.raw_bytes = raw_bytes;
    h.stored_bytes = static_cast<std::uint32_t>(stored.size());
    h.items = items;
    h.has_hash = !hash.empty();
    format::append_record(bytes_, h, hash, stored, {seed_, keys_});
    return {id_, h.offset_bytes, h.tag()};
  }
  RecordRef add_plain(RecordType type, const Bytes& raw, std::uint32_t items) {
    return add(type, static_cast<std::uint32_t>(raw.size()), raw, items);
  }
  std::uint64_t id() const { return id_; }
  const Bytes& bytes() const { return bytes_; }
  // The next records, as those of an encrypted store.
  void seal_with(const base::StoreKeys* keys) { keys_ = keys; }
  void damage(std::uint64_t at) { bytes_[static_cast<std::size_t>(at)] ^= std::byte{1}; }

 private:
  std::uint64_t seed_, id_;
  const base::StoreKeys* keys_ = nullptr;
  Bytes bytes_;
};

Bytes pages_of(std::size_t count, std::byte first) {
  Bytes out;
  for (std::size_t i = 0; i < count; ++i) {
    out.insert(out.end(), kPageBytes,
               static_cast<std::byte>(std::to_integer<std::size_t>(first) + i));
  }
  return out;
}

// Deltas of pages 0, 1, ...: each sets the first byte.
Bytes deltas_of(std::size_t count, std::byte value) {
  format::DeltaBatch batch;
  Bytes page(kPageBytes);
  page[0] = value;
  for (std::size_t i = 0; i < count; ++i) batch.add_difference_from_zero(i, page.data());
  return format::encode_delta_batch(batch, 0, count);
}

class Forged : public testing::Test {
 protected:
  Forged() {
    store_ = StoreDirectory::create(fs_, "/s", small_options());
    pack_ = std::make_unique<Pack>(*store_, 1);
  }

  RecordRef add_pages(std::size_t count, std::byte first = std::byte{1}) {
    return pack_->add_plain(RecordType::pages, pages_of(count, first),
                            static_cast<std::uint32_t>(count));
  }
  RecordRef add_deltas(std::size_t count, std::byte value = std::byte{0xd}) {
    return pack_->add_plain(RecordType::deltas, deltas_of(count, value),
                            static_cast<std::uint32_t>(count));
  }
  format::MapBlockRef add_block(const std::vector<MapEntry>& entries) {
    const auto items = static_cast<std::uint32_t>(entries.size());
    const auto ref =
        pack_->add_plain(RecordType::map_block, format::encode_map_block(entries), items);
    return {entries.front().page, entries.back().page + entries.back().count - 1, ref.offset_bytes,
            ref.tag, items};
  }
  format::RunRef add_root(const format::RunRoot& root) {
    const auto ref = pack_->add_plain(RecordType::run_root, format::encode_run_root(root),
                                      static_cast<std::uint32_t>(root.blocks.size()));
    std::uint64_t entries = 0;
    for (const auto& b : root.blocks) entries += b.entries;
    return {ref, entries};
  }
  void publish(std::vector<format::RunRef> runs) {
    fs_.write_file(store_->packs().path_of(pack_->id()), pack_->bytes());
    format::SnapshotRef ref;
    ref.branch = "main";
    ref.version.branch_id = kBranchId;
    ref.version.region_bytes = kForgedPages * kPageBytes;
    ref.version.next_pack_number = 2;
    ref.version.runs = std::move(runs);
    store_->create_snapshot("forged", ref);
  }
  void publish(const std::vector<MapEntry>& entries) {
    publish({add_root({{add_block(entries)}, {pack_->id()}})});
  }

  // Another process, which has no cached state.
  std::shared_ptr<StoreDirectory> open() { return StoreDirectory::open(fs_, "/s"); }
  Bytes read() {
    const auto store = open();
    Bytes out(kForgedPages * kPageBytes);
    open_version(*store, "forged")->read(0, kForgedPages, out.data());
    return out;
  }
  void expect_verify_complains() {
    const auto store = open();
    for (const auto& d : verify_store(*store, true, nullptr).damages) {
      if (std::find(d.versions.begin(), d.versions.end(), "snapshot 'forged'") !=
          d.versions.end()) {
        return;
      }
    }
    ADD_FAILURE() << "verify finds nothing wrong with snapshot 'forged'";
  }
  // Every other use of the version gives a result or an Error.
  void use_otherwise() {
    const auto attempt = [&](const std::function<void(StoreDirectory&)>& body) {
      try {
        body(*open());
      } catch (const Error& e) {
        EXPECT_EQ(errc_name(e.code()), std::string("corrupted")) << e.what();
      }
    };
    attempt([](StoreDirectory& s) { collect_garbage(s, false, nullptr); });
    attempt([](StoreDirectory& s) {
      s.create_branch_at("trial", read_snapshot(s, "forged").version, "forged");
      auto writer = BranchWriter::open(s, "trial");
      for (int i = 0; i < 2 * kMaxDeltasInARow; ++i) {
        Model model(kForgedPages);
        for (PageNumber p = 0; p < kForgedPages; ++p) {
          model.store64(p, 64, static_cast<std::uint64_t>(i) + 1);
        }
        commit(*writer, model, true);
      }
    });
  }
  static constexpr int kMaxDeltasInARow = 12;

  void expect_refused(const char* reason) {
    const auto text = error_text(Errc::corrupted, [&] { read(); });
    EXPECT_TRUE(contains(text, reason)) << text;
    EXPECT_TRUE(contains(text, "snapshot 'forged'")) << text;
    expect_verify_complains();
    use_otherwise();
  }
  // The same in the fault handler, with the version already open.
  void expect_page_refused(const char* reason) {
    {
      const auto store = open();
      const auto source = open_version(*store, "forged");
      Bytes out(kForgedPages * kPageBytes);
      ReadFailure failure;
      EXPECT_FALSE(source->try_read(0, kForgedPages, out.data(), failure));
      char last_words[400];
      source->describe(failure, last_words);
      EXPECT_TRUE(contains(last_words, reason)) << last_words;
      EXPECT_TRUE(contains(last_words, "page ")) << last_words;
    }
    expect_refused(reason);
  }
  static MapEntry base(PageNumber page, const RecordRef& record, std::uint32_t slot = 0,
                       std::uint32_t count = 1) {
    return {page, count, slot, PageKind::base, 0, record};
  }
  static MapEntry delta(PageNumber page, const RecordRef& record, std::uint8_t depth,
                        std::uint32_t slot = 0) {
    return {page, 1, slot, PageKind::delta, depth, record};
  }

  vellum::test::MemoryFs fs_;
  std::shared_ptr<StoreDirectory> store_;
  std::unique_ptr<Pack> pack_;
};

TEST_F(Forged, WhatIsWellFormedIsRead) {
  const RecordRef record = add_pages(4);
  const RecordRef changes = add_deltas(2);
  publish({delta(0, changes, 1), base(0, record), base(1, record, 1, 3)});
  Bytes expected = pages_of(4, std::byte{1});
  expected.resize(kForgedPages * kPageBytes);
  expected[0] = std::byte{0xd};
  EXPECT_EQ(read(), expected);
  EXPECT_TRUE(verify_store(*open(), true, nullptr).damages.empty());
  use_otherwise();
}

// Any record may have a hash between header and payload; verify checks it.
TEST_F(Forged, RecordsWithAHashAreRead) {
  const auto hash_of = [](const Bytes& bytes) {
    const auto hash = base::sha256(bytes);
    return Bytes(hash.begin(), hash.end());
  };
  const Bytes raw = pages_of(4, std::byte{1});
  Bytes stored(base::compress_bound(Compression::zstd, raw.size()));
  stored.resize(base::Compressor().compress(Compression::zstd, 1, raw, stored));
  const auto raw_bytes = static_cast<std::uint32_t>(raw.size());
  const RecordRef plain =
      pack_->add(RecordType::pages, raw_bytes, raw, 4, Compression::none, hash_of(raw));
  const RecordRef packed =
      pack_->add(RecordType::pages, raw_bytes, stored, 4, Compression::zstd, hash_of(raw));
  const Bytes map =
      format::encode_map_block(std::vector<MapEntry>{base(0, plain, 0, 4), base(4, packed, 0, 4)});
  const auto block = pack_->add(RecordType::map_block, static_cast<std::uint32_t>(map.size()), map,
                                2, Compression::none, hash_of(map));
  publish({add_root({{{0, 7, block.offset_bytes, block.tag, 2}}, {pack_->id()}})});
  Bytes expected = raw;
  expected.insert(expected.end(), raw.begin(), raw.end());
  expected.resize(kForgedPages * kPageBytes);
  EXPECT_EQ(read(), expected);
  EXPECT_TRUE(verify_store(*open(), true, nullptr).damages.empty());
  use_otherwise();
}

TEST_F(Forged, APageThatTheRecordDoesNotHave) {
  publish({base(0, add_pages(4), 3, 2)});
  expect_page_refused("the record has no such page");
}

TEST_F(Forged, ADeltaThatTheRecordDoesNotHave) {
  const RecordRef record = add_pages(4);
  publish({delta(0, add_deltas(2), 1, 2), base(0, record)});
  expect_page_refused("the record has no such delta");
}

TEST_F(Forged, TheDeltaOfAnotherPage) {
  const RecordRef record = add_pages(4);
  publish({delta(0, add_deltas(2), 1, 1), base(0, record)});
  expect_page_refused("the record has no such delta");
}

TEST_F(Forged, ARecordOfAnotherType) {
  publish({base(0, add_deltas(2))});
  expect_page_refused("the record is of another type");
}

TEST_F(Forged, ARecordThatEntriesTakeForBothTypes) {
  const RecordRef record = add_pages(4);
  publish({base(0, record), delta(1, record, 1)});
  expect_page_refused("the record is of another type");
}

TEST_F(Forged, AChainWithAGap) {
  const RecordRef record = add_pages(4);
  publish({delta(0, add_deltas(1), 3), base(0, record)});
  expect_page_refused("the page's delta chain is broken");
}

TEST_F(Forged, AChainWithoutAnEnd) {
  publish({delta(0, add_deltas(1), 2)});
  expect_page_refused("the page's delta chain has no end");
}

// Checkpoints and diff read chains separately.
TEST_F(Forged, ChainsThatAreAskedFor) {
  const RecordRef record = add_pages(4), changes = add_deltas(2);
  publish({delta(0, changes, 3), base(0, record), delta(1, changes, 2, 1)});
  const auto store = open();
  const auto source = open_version(*store, "forged");
  auto text = error_text(Errc::corrupted, [&] { source->chain(0); });
  EXPECT_TRUE(contains(text, "page 0: ")) << text;
  EXPECT_TRUE(contains(text, "the page's delta chain is broken")) << text;
  text = error_text(Errc::corrupted, [&] { source->chain(1); });
  EXPECT_TRUE(contains(text, "page 1: ")) << text;
  EXPECT_TRUE(contains(text, "the page's delta chain has no end")) << text;
  EXPECT_TRUE(source->chain(2).empty());
}

TEST_F(Forged, AChainThatIsTooLongForTheHandler) {
  const RecordRef record = add_pages(4);
  const RecordRef changes = add_deltas(1);
  std::vector<MapEntry> entries;
  for (std::uint8_t depth = 65; depth > 0; --depth) entries.push_back(delta(0, changes, depth));
  entries.push_back(base(0, record));
  publish(entries);
  expect_page_refused("the page's delta chain is too long");
}

TEST_F(Forged, PagesThatDoNotDecompress) {
  const Bytes garbage(100, std::byte{0x5a});
  constexpr Codec kAll[] = {Compression::lz4,
                            Compression::zstd,
                            {Compression::lz4, Filter::words},
                            {Compression::zstd, Filter::words}};
  for (const Codec codec : kAll) {
    SCOPED_TRACE(base::codec_name(codec));
    pack_ = std::make_unique<Pack>(*store_, 1);
    publish({base(0, pack_->add(RecordType::pages, 4 * kPageBytes, garbage, 4, codec))});
    expect_page_refused("the record does not decompress");
    fs_.erase("/s");
    store_ = StoreDirectory::create(fs_, "/s", small_options());
  }
}

// Frames have no room for its seal, so it is refused before its payload is read: the payload is
// damaged here.
TEST_F(Forged, AnEncryptedRecord) {
  const base::StoreKeys keys(base::Secret::random(base::kKeyBytes));
  constexpr std::uint32_t kPagesOfAFrame = 32;
  pack_->seal_with(&keys);
  const RecordRef record = add_pages(kPagesOfAFrame);
  pack_->seal_with(nullptr);
  pack_->damage(record.offset_bytes + format::kRecordHeaderBytes + 7);
  publish({base(0, record, 0, kPagesOfAFrame)});
  expect_page_refused("an encrypted record in a plain store");
}

TEST_F(Forged, EncryptedDeltas) {
  const base::StoreKeys keys(base::Secret::random(base::kKeyBytes));
  pack_->seal_with(&keys);
  const RecordRef record = add_deltas(3);
  pack_->seal_with(nullptr);
  pack_->damage(record.offset_bytes + format::kRecordHeaderBytes + 1);
  publish({delta(0, record, 1)});
  expect_page_refused("an encrypted record in a plain store");
}

TEST_F(Forged, PagesThatAreMoreThanABlock) {
  publish({base(0, add_pages(format::kMaxGrownBlockBytes / kPageBytes + 1))});
  expect_page_refused("the record is larger than the store's blocks");
}

TEST_F(Forged, DeltasThatDoNotParse) {
  publish({delta(0, pack_->add_plain(RecordType::deltas, Bytes(50, std::byte{0xff}), 1), 1)});
  expect_page_refused("the deltas do not parse");
}

TEST_F(Forged, DeltasOfAnotherNumber) {
  publish({delta(0, pack_->add_plain(RecordType::deltas, deltas_of(3, std::byte{1}), 2), 1)});
  expect_page_refused("the deltas do not parse");
}

TEST_F(Forged, AMapBlockThatDoesNotParse) {
  const RecordRef block = pack_->add_plain(RecordType::map_block, Bytes(50, std::byte{0xff}), 1);
  publish({add_root({{{0, 0, block.offset_bytes, block.tag, 1}}, {pack_->id()}})});
  expect_page_refused("the map block does not parse");
}

TEST_F(Forged, AMapBlockOfAnotherNumberOfEntries) {
  const RecordRef record = add_pages(4);
  const Bytes map =
      format::encode_map_block(std::vector<MapEntry>{base(0, record), base(2, record, 2)});
  const RecordRef block = pack_->add_plain(RecordType::map_block, map, 1);
  publish({add_root({{{0, 2, block.offset_bytes, block.tag, 2}}, {pack_->id()}})});
  expect_page_refused("the map block does not parse");
}

TEST_F(Forged, AMapBlockThatDoesNotDecompress) {
  const RecordRef block =
      pack_->add(RecordType::map_block, 60, Bytes(50, std::byte{0x5a}), 1, Compression::zstd);
  publish({add_root({{{0, 0, block.offset_bytes, block.tag, 1}}, {pack_->id()}})});
  expect_page_refused("the record does not decompress");
}

TEST_F(Forged, APackThatTheRootDoesNotName) {
  Pack other(*store_, 2);
  const RecordRef record = other.add_plain(RecordType::pages, pages_of(1, std::byte{1}), 1);
  fs_.write_file(store_->packs().path_of(other.id()), other.bytes());
  publish({base(0, record)});
  expect_page_refused("the version does not name the pack");
}

TEST_F(Forged, ARootThatDoesNotParse) {
  const RecordRef garbage = pack_->add_plain(RecordType::run_root, Bytes(50, std::byte{0xff}), 1);
  publish(std::vector<format::RunRef>{{garbage, 1}});
  expect_refused("the root of a run does not parse");
}

TEST_F(Forged, ARootOfAnotherNumberOfBlocks) {
  const RecordRef record = add_pages(4);
  const format::RunRoot root{{add_block({base(0, record)}), add_block({base(1, record)})},
                             {pack_->id()}};
  const RecordRef ref = pack_->add_plain(RecordType::run_root, format::encode_run_root(root), 1);
  publish(std::vector<format::RunRef>{{ref, 2}});
  expect_refused("the root of a run does not parse");
}

// Readers find a block by the pages that its root states for it. A block of other pages would be
// found or missed depending on the pages that are read together.
TEST_F(Forged, AMapBlockThatItsRootDescribesWrongly) {
  const auto expect_refused_as = [&](PageNumber first, PageNumber last, std::uint32_t entries) {
    SCOPED_TRACE(testing::Message() << first << " to " << last << ", " << entries << " entries");
    pack_ = std::make_unique<Pack>(*store_, 1);
    format::MapBlockRef wrong = add_block({base(2, add_pages(4), 0, 4)});
    wrong.first_page = first;
    wrong.last_page = last;
    wrong.entries = entries;
    publish({add_root({{wrong}, {pack_->id()}})});
    expect_page_refused("the map block is not the one that its root describes");
    const auto store = open();
    const auto source = open_version(*store, "forged");
    error_text(Errc::corrupted, [&] { source->chain(4); });
    std::uint8_t depths[8];
    error_text(Errc::corrupted, [&] { source->depths(0, depths); });
    EXPECT_EQ(source->zeros_from(4, 9), 0u) << "takes pages of a damaged run for zero";
    fs_.erase("/s");
    store_ = StoreDirectory::create(fs_, "/s", small_options());
  };
  expect_refused_as(2, 9, 1);
  expect_refused_as(4, 5, 1);
  expect_refused_as(0, 5, 1);
  expect_refused_as(2, 4, 1);
  expect_refused_as(2, 5, 2);
}

TEST_F(Forged, PagesOutsideOfTheRegion) {
  publish({base(kForgedPages, add_pages(1))});
  EXPECT_EQ(read(), Bytes(kForgedPages * kPageBytes));
  expect_verify_complains();
  use_otherwise();
}

// gc finds the needs of an open version in the copy after its root. Without it, gc frees nothing.
TEST_F(Forged, AnOpenVersionWithoutItsCopy) {
  publish({base(0, add_pages(4), 0, 4)});
  const Bytes before = read();
  const auto reader = open();
  const auto kept = resolve_kept(*reader, "forged");
  store_->remove_snapshot("forged");
  const auto text = error_text(Errc::busy, [&] { collect_garbage(*open(), false, nullptr); });
  EXPECT_TRUE(contains(text, "the copy of an open version is missing")) << text;
  Bytes out(before.size());
  PageSource::open(*reader, kept.version.version, {}, "kept")->read(0, kForgedPages, out.data());
  EXPECT_EQ(out, before);
}

// A branch with one hand-written commit in its journal.
class ForgedCommit : public testing::Test {
 protected:
  ForgedCommit() { store_ = StoreDirectory::create(fs_, "/s", small_options()); }

  void make(const std::vector<format::CommitPart>& parts) {
    if (has_branch(*store_, "main")) store_->remove_branch("main");
    store_->create_branch("main", kForgedPages * kPageBytes, 0);
    const std::string path = store_->journal_path("main");
    const auto header = store_->read_branch("main").journal.header;
    format::CommitBody body;
    body.region_bytes = kForgedPages * kPageBytes;
    body.parts = parts;
    const auto seed = store_->checksum_seed() ^ header.branch_id;
    const auto frame = format::encode_frame({format::FrameType::commit, 1, 1, 0},
                                            format::encode_commit(body), seed);
    fs_.open(path, base::OpenMode::read_write)
        ->pwrite(frame, store_->read_branch("main").journal.tail_bytes);
  }
  // Writes another version to the journal's base frame, and opens the branch for writing.
  std::string open_writer_with(const std::function<void(format::Version&)>& change) {
    const std::string path = store_->journal_path("main");
    auto journal = store_->read_branch("main").journal;
    change(journal.base);
    const Bytes bytes = whole_journal(journal.header, journal.base);
    fs_.erase(path);
    fs_.write_file(path, bytes);
    const auto store = StoreDirectory::open(fs_, "/s");
    return error_text(Errc::corrupted, [&] { BranchWriter::open(*store, "main"); });
  }
  static format::CommitPart compressed(format::PartType type, std::vector<PageNumber> pages,
                                       const Bytes& raw) {
    format::CommitPart part{type, Compression::zstd, static_cast<std::uint32_t>(raw.size()),
                            std::move(pages),
                            Bytes(base::compress_bound(Compression::zstd, raw.size()))};
    part.stored.resize(base::Compressor().compress(Compression::zstd, 1, raw, part.stored));
    return part;
  }
  void expect_refused(const char* reason) {
    for (const bool write : {false, true}) {
      const auto store = StoreDirectory::open(fs_, "/s");
      const auto text = error_text(Errc::corrupted, [&] {
        if (write) BranchWriter::open(*store, "main");
        open_version(*store, "main");
      });
      EXPECT_TRUE(contains(text, reason)) << text;
      EXPECT_TRUE(contains(text, "branch 'main'")) << text;
    }
    const auto report = verify_store(*store_, true, nullptr);
    ASSERT_EQ(report.damages.size(), 1u);
    EXPECT_EQ(report.damages[0].object, store_->journal_path("main"));
    EXPECT_EQ(report.damages[0].versions, std::vector<std::string>{"branch 'main'"});
  }

  vellum::test::MemoryFs fs_;
  std::shared_ptr<StoreDirectory> store_;
};

// A journal must not direct its writer to another branch's pack, nor past the end of its own.
TEST_F(ForgedCommit, AnActivePackThatIsNotTheBranchs) {
  for (const char* name : {"main", "other"}) {
    store_->create_branch(name, kForgedPages * kPageBytes, 0);
    auto writer = BranchWriter::open(*store_, name);
    std::mt19937_64 random(1);
    Model model(kForgedPages);
    model.fill(1, random);
    commit(*writer, model, true);
  }
  const format::Version other = store_->read_branch("other").journal.base;
  const std::string path = store_->packs().path_of(other.active_pack);
  const Bytes bytes = fs_.read_file(path);
  const format::Version good = store_->read_branch("main").journal.base;
  auto text = open_writer_with([&](format::Version& v) {
    v.active_pack = other.active_pack;
    v.active_pack_end_bytes = format::kPackHeaderBytes;
  });
  EXPECT_TRUE(contains(text, "the active pack belongs to another branch")) << text;
  EXPECT_TRUE(contains(text, path)) << text;
  EXPECT_EQ(fs_.read_file(path), bytes);

  text = open_writer_with([&](format::Version& v) {
    v.active_pack = good.active_pack;
    v.active_pack_end_bytes = good.active_pack_end_bytes + 8;
  });
  EXPECT_TRUE(contains(text, "truncated")) << text;
  EXPECT_FALSE(verify_store(*store_, true, nullptr).damages.empty());
}

// No writer compresses deltas in a commit, but the format permits it.
TEST_F(ForgedCommit, CompressedPartsAreRead) {
  make({compressed(format::PartType::deltas, {}, deltas_of(3, std::byte{7})),
        compressed(format::PartType::pages, {5, 6}, pages_of(2, std::byte{1}))});
  Bytes expected(kForgedPages * kPageBytes);
  for (std::size_t p = 0; p < 3; ++p) expected[p * kPageBytes] = std::byte{7};
  const Bytes pages = pages_of(2, std::byte{1});
  std::copy(pages.begin(), pages.end(), expected.begin() + 5 * kPageBytes);
  expect_same(*open_version(*store_, "main"), expected);
  EXPECT_TRUE(verify_store(*store_, true, nullptr).damages.empty());
  BranchWriter::open(*store_, "main").reset();  // checkpoints it
  expect_same(*open_version(*store_, "main"), expected);
  EXPECT_TRUE(verify_store(*store_, true, nullptr).damages.empty());
}

TEST_F(ForgedCommit, PartsThatDoNotDecompress) {
  const Bytes garbage(100, std::byte{0x5a});
  make({{format::PartType::pages, Compression::zstd, kPageBytes, {5}, garbage}});
  expect_refused("a part of a commit does not decompress");
  make({{format::PartType::deltas, Compression::lz4, 200, {}, garbage}});
  expect_refused("a part of a commit does not decompress");
}

TEST_F(ForgedCommit, DeltasThatDoNotParse) {
  const Bytes garbage(100, std::byte{0xff});
  make({{format::PartType::deltas, Compression::none, 100, {}, garbage}});
  expect_refused("the deltas of a commit do not parse");
}

// A few bytes that decompress to more than a journal can ever contain.
TEST_F(ForgedCommit, PartsThatClaimTooMuch) {
  const std::uint64_t most = 8 * std::uint64_t{small_options().journal_half_bytes};
  std::vector<format::CommitPart> parts;
  std::uint64_t claimed = 0;
  while (claimed <= most) {
    std::vector<PageNumber> pages(kForgedPages);
    for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = i;
    parts.push_back(compressed(format::PartType::pages, pages, Bytes(kForgedPages * kPageBytes)));
    claimed += kForgedPages * kPageBytes;
  }
  make(parts);
  expect_refused("the journal's commits claim");
}

// An encoding that a branch may have in general, but not in this store.
TEST_F(ForgedCommit, ABranchWithBlocksThatReadersHaveNoRoomFor) {
  store_->create_branch("main", kForgedPages * kPageBytes, 0);
  const std::string path = store_->journal_path("main");
  auto journal = store_->read_branch("main").journal;
  for (const std::uint32_t block_bytes : {1u << 20, 2u << 20}) {
    journal.header.encoding = format::Encoding{};
    journal.header.encoding->block_bytes = block_bytes;
    fs_.erase(path);
    fs_.write_file(path, whole_journal(journal.header, journal.base));
    const auto store = StoreDirectory::open(fs_, "/s");
    const bool fits = block_bytes == 1u << 20;
    EXPECT_EQ(verify_store(*store, false, nullptr).damages.empty(), fits);
    if (fits) {
      EXPECT_EQ(BranchWriter::open(*store, "main")->encoding().block_bytes, block_bytes);
    } else {
      const auto text = error_text(Errc::corrupted, [&] { BranchWriter::open(*store, "main"); });
      EXPECT_TRUE(contains(text, path)) << text;
    }
  }
}

}  // namespace
}  // namespace vellum::store::test
