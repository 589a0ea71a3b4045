// Moved content is stored as based pages: compressed with the pages of its earlier place as bases.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "store/gc/gc.hpp"
#include "store/gc/reach/live_set.hpp"
#include "store/gc/recompress_support.hpp"
#include "store/journal/read_journal.hpp"
#include "store/packs/pack_scanner.hpp"
#include "store/snapshots_fixture.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kMovedPages = 320;  // more than a large commit needs
constexpr std::size_t kMoveBytes = 1000;

// A record of based pages, and its base pages.
struct Based {
  format::RecordRef ref;
  std::uint64_t stored_bytes;
  std::vector<format::BasePage> bases;
};

std::vector<Based> based_records(StoreDirectory& store) {
  std::vector<Based> out;
  for (const std::uint64_t pack : store.packs().list()) {
    const auto file = store.fs().open(store.packs().path_of(pack), base::OpenMode::read_only);
    PackScanner scanner(*file, pack, store.checksum_seed(), format::kPackHeaderBytes,
                        file->size_bytes());
    format::RecordHeader h;
    while (scanner.next(h)) {
      if (h.type != format::RecordType::based_pages) continue;
      const format::RecordRef place{pack, h.offset_bytes, h.tag()};
      const auto record = read_record_at(*file, place, h.type, store.checksum_seed());
      std::vector<format::BasePage> bases(format::kMaxBasePages);
      std::size_t list_bytes = 0;
      // The offset in a reference may be larger than the record's place in the file.
      bases.resize(format::decode_base_pages(record.stored(), format::kMaxPackOffsetBytes, bases,
                                             list_bytes));
      EXPECT_FALSE(bases.empty());
      out.push_back({place, h.stored_bytes, bases});
    }
  }
  return out;
}

// The content becomes `from`, moved by `bytes`.
void move_by(std::size_t bytes, const std::vector<std::byte>& from, Model& model) {
  const auto at = from.begin() + static_cast<std::ptrdiff_t>(bytes);
  std::rotate_copy(from.begin(), at, from.end(), model.bytes.begin());
  for (PageNumber p = 0; p < from.size() / kPageBytes; ++p) model.touched.insert(p);
}

class BasedPages : public SnapshotsTest {
 protected:
  // Versions m0, m1, ...: each has the previous one's content, moved by kMoveBytes.
  void make(std::size_t versions, format::Superblock options = small_options(),
            const std::string& name = "s") {
    const auto writer = create(options, kMovedPages, name);
    std::mt19937_64 random(11);
    Model model(kMovedPages);
    for (PageNumber p = 0; p < kMovedPages; ++p) fill_text(model, p, random);
    commit_large(*writer, model, 0);
    for (std::size_t i = 1; i < versions; ++i) {
      move_by(kMoveBytes, std::vector<std::byte>(model.bytes), model);
      commit_large(*writer, model, i);
    }
  }
  // The same in several packs. Three versions of other content follow, so that the packs are
  // sealed.
  void make_in_small_packs() {
    format::Superblock options = small_options();
    options.pack_bytes = 640 << 10;
    make(6, options);
    ASSERT_FALSE(based_records(*store).empty());
    const auto writer = BranchWriter::open(*store, "main");
    std::mt19937_64 random(13);
    Model model(kMovedPages);
    for (std::size_t i = 6; i < 9; ++i) {
      for (PageNumber p = 0; p < kMovedPages; ++p) fill_text(model, p, random);
      commit_large(*writer, model, i);
    }
  }
  void commit_large(BranchWriter& writer, Model& model, std::size_t number) {
    thread_local base::Compressor compressor;
    auto c = writer.begin(kMovedPages);
    ASSERT_NE(c->dedup(), nullptr);
    c->add(model.take(4, compressor));
    c->finish(meta_for(model), true);
    name_head(writer, model, "m" + std::to_string(number));
  }
  std::uint64_t pack_bytes() {
    std::uint64_t sum = 0;
    for (const std::uint64_t pack : store->packs().list()) {
      sum +=
          store->fs().open(store->packs().path_of(pack), base::OpenMode::read_only)->size_bytes();
    }
    return sum;
  }
};

TEST_F(BasedPages, MovedContentIsBasedOnItsEarlierPages) {
  make(1);
  const std::uint64_t one = pack_bytes();
  ASSERT_TRUE(based_records(*store).empty());
  make(4, small_options(), "more");
  const auto based = based_records(*store);
  EXPECT_EQ(based.size(), 3 * kMovedPages / 4);
  EXPECT_LT(pack_bytes(), one + one / 2) << "three more versions";
  for (const Based& b : based) {
    EXPECT_LE(b.bases.size(), format::kMaxBasePages);
    for (const format::BasePage& page : b.bases) {
      EXPECT_LT(page.offset_bytes, b.ref.offset_bytes);
      const format::RecordRef ref{b.ref.pack, page.offset_bytes, page.tag};
      EXPECT_EQ(load_record(*store, ref, format::RecordType::pages).header.tag(), page.tag);
    }
  }
  expect_all();
}

TEST_F(BasedPages, NewContentIsStoredWhole) {
  const auto writer = create(small_options(), kMovedPages, "s");
  std::mt19937_64 random(12);
  Model model(kMovedPages);
  for (std::size_t i = 0; i < 2; ++i) {
    for (PageNumber p = 0; p < kMovedPages; ++p) fill_text(model, p, random);
    commit_large(*writer, model, i);
  }
  EXPECT_TRUE(based_records(*store).empty());
  expect_all();
}

// Base pages are searched for several blocks at once, and one of these may begin a pack.
TEST_F(BasedPages, PacksEndBetweenBlocksThatAreAppendedTogether) {
  auto options = small_options();
  options.pack_bytes = 1u << 20;
  const auto writer = create(options, kMovedPages, "s");
  std::mt19937_64 random(17);
  Model model(kMovedPages);
  for (PageNumber p = 0; p < kMovedPages; ++p) fill_text(model, p, random);
  for (std::size_t i = 0; i < 40; ++i) {
    commit_large(*writer, model, i);
    move_by(kMoveBytes, std::vector<std::byte>(model.bytes), model);
    // New and moved blocks alternate.
    for (PageNumber p = i % 4; p < kMovedPages; p += 8) {
      for (PageNumber q = p; q < std::min(p + 4, kMovedPages); ++q) fill_text(model, q, random);
    }
  }
  EXPECT_GT(store->packs().list().size(), 3);
  EXPECT_GT(based_records(*store).size(), 100);
  expect_all();
}

TEST_F(BasedPages, BasePagesStayWhenTheirOwnVersionsAreRemoved) {
  make(4);
  for (const char* name : {"m0", "m1", "m2"}) remove(name);
  gc();
  expect_all();
  gc();  // with the live set of the first gc
  expect_all();
  EXPECT_FALSE(based_records(*store).empty());
}

TEST_F(BasedPages, BasePagesAreFreedWithTheLastRecordThatNeedsThem) {
  make(3);
  for (const char* name : {"m0", "m1"}) remove(name);
  {
    const auto writer = BranchWriter::open(*store, "main");
    std::mt19937_64 random(13);
    Model model(kMovedPages);
    for (PageNumber p = 0; p < kMovedPages; ++p) fill_text(model, p, random);
    commit_large(*writer, model, 9);
  }
  remove("m2");
  const std::uint64_t before = pack_allocated(*store);
  gc();
  EXPECT_LT(pack_allocated(*store), before * 3 / 4);
  expect_all();
}

// Sealed packs are rewritten. Records of based pages do not change, even if some pages next to
// their base pages are freed.
TEST_F(BasedPages, RecompressionKeepsBasedPages) {
  make_in_small_packs();
  for (const char* name : {"m0", "m2", "m3"}) remove(name);
  for (const int level : {9, 12}) {
    const auto fresh = StoreDirectory::open(fs, store->path());
    EXPECT_GT(translate_all(*fresh, level), 0u);
    expect_all();
    EXPECT_FALSE(based_records(*fresh).empty());
  }
  gc(12);
  expect_all();
  gc();
  expect_all();
}

TEST_F(BasedPages, AWriterUsesNoPageThatGcHasFreed) {
  const auto writer = create(small_options(), kMovedPages, "s");
  std::mt19937_64 random(14);
  Model model(kMovedPages);
  for (PageNumber p = 0; p < kMovedPages; ++p) fill_text(model, p, random);
  commit_large(*writer, model, 0);
  const std::vector<std::byte> old = model.bytes;
  for (PageNumber p = 0; p < kMovedPages; ++p) fill_text(model, p, random);
  commit_large(*writer, model, 1);
  remove("m0");
  commit_large(*writer, model, 2);  // the previous base frame is no longer valid
  commit_large(*writer, model, 3);
  EXPECT_GT(gc().freed_bytes, 0u);
  move_by(kMoveBytes, old, model);
  commit_large(*writer, model, 4);
  expect_all();
}

// Commits to the journal, and a background checkpoint that the last of them has written.
class BasedPagesBeside : public BasedPages {
 protected:
  static constexpr std::size_t kFewPages = 24;

  BasedPagesBeside() {
    format::Superblock options = small_options();
    options.journal_half_bytes = 256 << 10;
    writer = create(options, kFewPages, "s");
    writer.reset();
    use_background_checkpoints(*store);
    writer = BranchWriter::open(*store, "main");
    texts(15);
    commit(*writer, model, true);
  }
  void texts(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (PageNumber p = 0; p < kFewPages; ++p) fill_text(model, p, random);
  }
  // Commits moved content, further with each commit, until a half of the journal is half full.
  void commit_moved(const std::vector<std::byte>& from) {
    const std::uint64_t before = epoch();
    for (std::size_t i = 1; based_records(*store).empty(); ++i) {
      ASSERT_LT(i, 10u);
      move_by(i * kMoveBytes, from, model);
      commit(*writer, model, false);
    }
    ASSERT_EQ(epoch(), before) << "a checkpoint was published";
  }
  void commit_word(std::uint64_t value) {
    model.store64(3, 8, value);
    commit(*writer, model, false);
    contents["main"] = model.bytes;
    expect_all();
  }
  std::uint64_t epoch() {
    const auto file = fs.open(dir.path("s/branches/main/journal"), base::OpenMode::read_only);
    return read_journal(*file, store->superblock().store_id).epoch;
  }

  std::unique_ptr<BranchWriter> writer;
  Model model{kFewPages};
};

TEST_F(BasedPagesBeside, CheckpointsUseBasePages) {
  commit_moved(std::vector<std::byte>(model.bytes));
  const std::uint64_t before = epoch();
  commit_word(1);
  EXPECT_GT(epoch(), before) << "not published";
  gc();
  expect_all();
}

TEST_F(BasedPagesBeside, ACheckpointWhoseBasePagesGcHasFreedIsNotPublished) {
  const std::vector<std::byte> old = model.bytes;
  texts(16);
  commit(*writer, model, true);
  for (std::uint64_t i = 0; i < 2; ++i) {  // the previous base frame is no longer valid
    model.store64(3, 8, i);
    commit(*writer, model, true);
  }
  commit_moved(old);
  EXPECT_GT(gc().freed_bytes, 0u);
  const std::uint64_t before = epoch();
  commit_word(2);
  EXPECT_EQ(epoch(), before);
  writer.reset();  // with a checkpoint
  EXPECT_GT(epoch(), before);
  expect_all();
}

TEST_F(BasedPagesBeside, ACheckpointWaitsForARunningGc) {
  commit_moved(std::vector<std::byte>(model.bytes));
  const std::uint64_t before = epoch();
  {
    const auto other = StoreDirectory::open(fs, store->path());
    const GcExclusive gc_at_work(*other);
    commit_word(1);
    EXPECT_EQ(epoch(), before);
  }
  commit_word(2);
  EXPECT_GT(epoch(), before);
}

TEST_F(BasedPages, DamageInABaseRecordIsNamed) {
  make(2);
  const auto based = based_records(*store);
  ASSERT_FALSE(based.empty());
  const format::BasePage& page = based.front().bases.front();
  const std::string path = store->packs().path_of(based.front().ref.pack);
  const auto file = fs.open(path, base::OpenMode::read_write);
  std::array<std::byte, 1> byte;
  file->pread(byte, page.offset_bytes + format::kRecordHeaderBytes + 20);
  byte[0] ^= std::byte{1};
  file->pwrite(byte, page.offset_bytes + format::kRecordHeaderBytes + 20);

  const std::string place = path + " at byte " + std::to_string(page.offset_bytes);
  const auto fresh = StoreDirectory::open(fs, store->path());
  bool named = false;
  for (const auto& damage : verify_store(*fresh, true, nullptr).damages) {
    named |= damage.object != place && contains(damage.reason, place);
  }
  EXPECT_TRUE(named) << place;
  const std::string text = error_text(Errc::corrupted, [&] {
    std::vector<std::byte> all(kMovedPages * kPageBytes);
    open_version(*fresh, "m1")->read(0, kMovedPages, all.data());
  });
  EXPECT_TRUE(contains(text, place)) << text;
}

// A record with a forged list of base pages.
TEST_F(BasedPages, HostileListsAreRefused) {
  make(2);
  const auto based = based_records(*store);
  ASSERT_FALSE(based.empty());
  const auto refused = [&](const std::vector<format::BasePage>& bases, const char* why) {
    const auto file =
        fs.open(store->packs().path_of(based.front().ref.pack), base::OpenMode::read_write);
    auto stored = format::encode_base_pages(bases);
    stored.resize(stored.size() + 64);
    format::RecordHeader h;
    h.type = format::RecordType::based_pages;
    h.codec = base::Compression::zstd;
    h.pack = based.front().ref.pack;
    h.offset_bytes = (file->size_bytes() + 7) / 8 * 8;
    h.raw_bytes = kPageBytes;
    h.items = 1;
    std::vector<std::byte> record;
    format::append_record(record, h, {}, stored, store->checksum_seed());
    file->pwrite(record, h.offset_bytes);
    const format::RecordRef ref{h.pack, h.offset_bytes, h.tag()};
    store->packs().open(h.pack);
    RecordCache::View view;
    ReadFailure failure;
    EXPECT_FALSE(store->records().get({ref, format::RecordType::pages}, view, failure));
    EXPECT_STREQ(failure.reason, why);
    EXPECT_THROW(load_pages(*store, ref), Error);
  };
  const format::RecordRef& itself = based.front().ref;
  const format::BasePage& good = based.front().bases.front();
  refused({{itself.offset_bytes, itself.tag, 0}}, "the record of a base page has base pages");
  refused({{good.offset_bytes, good.tag, 1000}}, "the record lacks a base page");
  refused({{good.offset_bytes, good.tag ^ 1, 0}}, "stale record");
  refused({{1ull << 40, 1, 0}}, "the record's base pages do not parse");  // after the record itself
  refused({{good.offset_bytes, good.tag, 0}}, "the record does not decompress");
}

// Pages that gc has freed read as zeros, so a record based on them would decode to other content.
// The table of a rewritten pack lists the freed pages; here it lists all base pages.
TEST_F(BasedPages, FreedBasePagesAreNeverRead) {
  make_in_small_packs();
  const auto fresh = StoreDirectory::open(fs, store->path());
  ASSERT_GT(translate_all(*fresh, 9), 0u);
  std::set<std::pair<std::uint64_t, std::uint64_t>> given_back;  // pack and offset of a base record
  for (const Based& based : based_records(*fresh)) {
    if (!is_translated(*fresh, based.ref.pack)) continue;
    for (const auto& page : based.bases) given_back.insert({based.ref.pack, page.offset_bytes});
  }
  ASSERT_FALSE(given_back.empty());
  for (const std::uint64_t pack : fresh->packs().list()) {
    if (!is_translated(*fresh, pack)) continue;
    pretend_given_back(*fresh, pack, [&](const auto& line) {
      return given_back.contains({pack, line.old_offset_bytes});
    });
  }
  const auto again = StoreDirectory::open(fs, store->path());
  const auto version = open_version(*again, "m1");
  std::size_t refused = 0;
  std::vector<std::byte> page(kPageBytes);
  for (PageNumber p = 0; p < kMovedPages; ++p) {
    try {
      version->read(p, 1, page.data());
      EXPECT_EQ(std::memcmp(page.data(), &contents["m1"][p * kPageBytes], kPageBytes), 0) << p;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::corrupted) << e.what();
      refused += contains(e.what(), "lacks a base page") ? 1 : 0;
    }
  }
  EXPECT_GT(refused, 0u);
}

TEST(BasePageLists, OnlyListsOfTheEncoderAreRead) {
  const std::vector<format::BasePage> bases{{64, 1, 3}, {64, 1, 4}, {128, 2, 0}, {4096, 3, 700}};
  const auto bytes = format::encode_base_pages(bases);
  std::vector<format::BasePage> out(format::kMaxBasePages);
  std::size_t list_bytes = 0;
  ASSERT_EQ(format::decode_base_pages(bytes, 8192, out, list_bytes), bases.size());
  EXPECT_EQ(list_bytes, bytes.size());
  out.resize(bases.size());
  EXPECT_EQ(out, bases);
  out.resize(format::kMaxBasePages);
  EXPECT_EQ(format::decode_base_pages(bytes, 4096, out, list_bytes), 0u)
      << "the base page is not before the record";
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(format::decode_base_pages(std::span(bytes).first(n), 8192, out, list_bytes), 0u) << n;
  }
  const std::vector<format::BasePage> descending{{64, 1, 4}, {64, 1, 3}};
  EXPECT_EQ(format::decode_base_pages(format::encode_base_pages(descending), 8192, out, list_bytes),
            0u);
  std::vector<std::byte> many = bytes;
  many[0] = std::byte{33};
  EXPECT_EQ(format::decode_base_pages(many, 8192, out, list_bytes), 0u);
}

}  // namespace
}  // namespace vellum::store::test
