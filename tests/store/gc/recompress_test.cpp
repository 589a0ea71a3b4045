// Rewriting packs: needed data remains, space is freed, and others work concurrently.
#include <gtest/gtest.h>

#include <array>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/check/check.hpp"
#include "store/gc/pack_rewriter.hpp"
#include "store/gc/recompress_support.hpp"
#include "store/gc/record_encoder.hpp"
#include "store/packs/record/pack_writer.hpp"
#include "store/packs/record/record_io.hpp"
#include "store/snapshots_fixture.hpp"
#include "support/disk/crash_images_lib.hpp"
#include "support/sanitizers.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kRecompressPages = 512;
constexpr int kLevel = 9;

// A store with snapshots s0, s1, ...; each rewrites random pages, and words in others.
class RecompressTest : public SnapshotsTest {
 protected:
  void make(std::size_t snapshots, std::size_t changed, std::uint64_t pack_bytes = 96u << 10,
            const char* name = "s") {
    format::Superblock options = small_options();
    options.pack_bytes = pack_bytes;
    const auto writer = create(options, kRecompressPages, name);
    Model model(kRecompressPages);
    for (PageNumber p = 0; p < kRecompressPages; ++p) fill_text(model, p, random);
    for (std::size_t i = 0; i < snapshots; ++i) {
      for (std::size_t n = 0; i != 0 && n < changed; ++n) {
        fill_text(model, random() % kRecompressPages, random);
        model.store64(random() % kRecompressPages, 8 * (random() % 512), random());
      }
      commit(*writer, model, true);
      name_head(*writer, model, "s" + std::to_string(i));
    }
  }
  RecompressReport recompress(int level = kLevel) { return gc(level).recompressed; }
  std::vector<std::string> in_tmp() {
    std::vector<std::string> out;
    for (const auto& entry : fs.list(store->tmp_directory())) out.push_back(entry.name);
    return out;
  }

  std::mt19937_64 random{7};
};

TEST_F(RecompressTest, EveryVersionStaysBitForBit) {
  make(12, 40);
  for (int i = 0; i < 12; i += 2) remove("s" + std::to_string(i));
  gc();
  const std::uint64_t before = pack_allocated(*store);
  const RecompressReport report = recompress();
  EXPECT_GT(report.packs, 2u);
  EXPECT_EQ(translated_packs(*store), report.packs);
  const std::uint64_t after = pack_allocated(*store);
  EXPECT_EQ(before - after, report.bytes_before - report.bytes_after);
  EXPECT_LT(after, before * 9 / 10);
  EXPECT_TRUE(in_tmp().empty());
  expect_all();

  // A second run finds nothing to do, and writes nothing.
  fs.reset_counts();
  EXPECT_EQ(recompress().packs, 0u);
  EXPECT_EQ(fs.seen(Call::write), 0u);
  EXPECT_EQ(fs.seen(Call::rename), 0u);
  // A lower level finds nothing either.
  EXPECT_EQ(recompress(kLevel - 3).packs, 0u);
  // stat and gc report the same store.
  const StoreStat stat = stat_store(*StoreDirectory::open(fs, store->path()));
  EXPECT_GE(stat.pack_bytes, stat.pack_needed_bytes);
  EXPECT_LT(stat.pack_freeable_bytes, 8u << 10);
  gc();
  expect_all();
}

// References are translated by both tables.
TEST_F(RecompressTest, AgainAndAgainWhileWritersGoOn) {
  make(10, 40);
  std::uint64_t again = 0;
  for (int round = 0; round < 6; ++round) {
    std::vector<std::uint64_t> translated;
    for (const std::uint64_t pack : store->packs().list()) {
      if (is_translated(*store, pack)) translated.push_back(pack);
    }
    if (round < 5) remove("s" + std::to_string(round));
    if (round > 1) remove("r" + std::to_string(round - 2));
    const RecompressReport report = recompress(3 + 2 * round);
    again += report.packs + translated.size() - translated_packs(*store);
    expect_all();
    auto writer = BranchWriter::open(*store, "main");
    Model model(kRecompressPages);
    model.bytes = contents.at("main");
    for (int i = 0; i < 4; ++i) {
      Model now(kRecompressPages);
      now.bytes = model.bytes;
      for (int n = 0; n < 60; ++n) fill_text(now, random() % kRecompressPages, random);
      commit(*writer, now, true);
      model.bytes = now.bytes;
    }
    name_head(*writer, model, "r" + std::to_string(round));
    writer.reset();
    gc();
    expect_all();
  }
  EXPECT_GT(again, 3u);
}

// Blocks of 4 pages of which one or two are needed, and batches of deltas.
TEST_F(RecompressTest, GivesBackWhatIsDeadInsideOfBlocks) {
  make(14, 120);
  for (int i = 0; i < 13; ++i) remove("s" + std::to_string(i));
  const std::uint64_t whole = pack_allocated(*store);
  gc();
  const std::uint64_t punched = pack_allocated(*store);
  // At the store's own level, only dropped records make a difference.
  const RecompressReport report = recompress(1);
  const std::uint64_t after = pack_allocated(*store);
  std::printf("  all %llu KiB, after gc %llu, after recompression at the same level %llu\n",
              static_cast<unsigned long long>(whole >> 10),
              static_cast<unsigned long long>(punched >> 10),
              static_cast<unsigned long long>(after >> 10));
  EXPECT_GT(report.packs, 0u);
  EXPECT_LT(after, punched * 3 / 4);
  expect_all();
}

TEST_F(RecompressTest, ADryRunSaysItAndChangesNothing) {
  make(10, 60);
  for (int i = 0; i < 9; ++i) remove("s" + std::to_string(i));
  gc();
  fs.reset_counts();
  const RecompressReport look =
      collect_garbage(*StoreDirectory::open(fs, store->path()), true, nullptr, kLevel).recompressed;
  for (const Call call :
       {Call::create, Call::write, Call::rename, Call::unlink, Call::punch, Call::truncate}) {
    EXPECT_EQ(fs.seen(call), 0u) << static_cast<int>(call);
  }
  const RecompressReport done = recompress();
  EXPECT_EQ(look.packs, done.packs);
  EXPECT_EQ(look.bytes_before, done.bytes_before);
  EXPECT_NEAR(static_cast<double>(look.bytes_after), static_cast<double>(done.bytes_after),
              static_cast<double>(done.bytes_after) / 10);
}

TEST_F(RecompressTest, LevelsOutsideTheRangeAreRefused) {
  make(1, 0);
  for (const int level : {-1, 20, 1000}) {
    error_text(Errc::invalid_argument, [&] { gc(level); });
  }
}

// Packs of a removed branch have no writer, sealed or not. The data that snapshots need remains.
TEST_F(RecompressTest, PacksOfARemovedBranch) {
  make(6, 40);
  store->remove_branch("main");
  contents.erase("main");
  const std::size_t packs = store->packs().list().size();
  EXPECT_EQ(recompress().packs, packs);
  expect_all();
}

TEST_F(RecompressTest, AnActivePackIsLeftAlone) {
  make(4, 40, 64u << 20);
  EXPECT_EQ(recompress().packs, 0u);
  expect_all();
}

// A reader with the old files open continues to read them, and opens other versions through them.
TEST_F(RecompressTest, AReaderFromBefore) {
  make(10, 40);
  const auto early = StoreDirectory::open(fs, store->path());
  auto kept = resolve_kept(*early, "s1");
  const auto source = PageSource::open(*early, kept.version.version, {}, kept.version.label);
  std::vector<std::byte> half(kRecompressPages / 2 * kPageBytes);
  source->read(0, kRecompressPages / 2, half.data());
  const auto bytes = contents.at("s1");
  remove("s1");
  remove("s2");
  const GcReport report = gc(kLevel);
  EXPECT_GT(report.recompressed.packs, 0u);
  EXPECT_EQ(report.recompressed.packs_in_use, 1u);  // in the file with its pin
  EXPECT_EQ(report.open_versions, 1u);
  expect_same(*source, bytes);
  for (const auto& [name, content] : contents) {
    const auto later = resolve_kept(*early, name);
    expect_same(*PageSource::open(*early, later.version.version, later.version.commits, name),
                content);
  }
  kept.version_pin.reset();
  EXPECT_EQ(recompress().packs_in_use, 0u);
  expect_all();
}

// A store object that has the old file of a pack opens a version whose pin belongs in the new one.
TEST_F(RecompressTest, APinIsSetOnTheNewFile) {
  make(10, 40);
  const auto early = StoreDirectory::open(fs, store->path());
  for (const auto& [name, bytes] : contents) expect_same(*open_version(*early, name), bytes);
  ASSERT_GT(recompress().packs, 2u);
  const auto kept = resolve_kept(*early, "s3");
  ASSERT_TRUE(is_translated(*store, kept.version.version.runs[0].root.pack));
  const auto source = PageSource::open(*early, kept.version.version, {}, "s3");
  const auto bytes = contents.at("s3");
  for (int i = 0; i < 10; ++i) remove("s" + std::to_string(i));
  const GcReport report = gc(kLevel);
  EXPECT_EQ(report.open_versions, 1u);
  EXPECT_GE(report.recompressed.packs_in_use, 1u);
  // A new store object, so that no cache or old file is used.
  const auto late = StoreDirectory::open(fs, store->path());
  expect_same(*PageSource::open(*late, kept.version.version, {}, "s3"), bytes);
  expect_same(*source, bytes);
  expect_all();
}

// Versions that are opened during the rewriting of a pack, and closed before the next pack:
// only the process that is about to rename can detect them.
TEST_F(RecompressTest, AVersionOpenedMeanwhile) {
  make(10, 40);
  const auto early = StoreDirectory::open(fs, store->path());
  std::map<std::string, KeptVersion> kept;
  const auto open_or_close = [&](const Progress& progress) {
    if (std::string(progress.unit) != "bytes") return;
    if (!kept.empty()) return kept.clear();
    for (const auto& [name, bytes] : contents) kept[name] = resolve_kept(*early, name);
  };
  const auto report =
      collect_garbage(*StoreDirectory::open(fs, store->path()), false, open_or_close, kLevel)
          .recompressed;
  EXPECT_GT(report.packs_in_use, 2u);
  EXPECT_TRUE(in_tmp().empty());
  expect_all();
  EXPECT_GE(recompress().packs, report.packs_in_use);
  expect_all();
}

// Tables of several blocks: gc must not free them.
TEST_F(RecompressTest, TablesStayWhenHolesArePunched) {
  format::Superblock options = small_options();
  options.block_bytes = 4096;
  options.pack_bytes = 1536u << 10;
  store = StoreDirectory::create(fs, dir.path("s"), options);
  store->create_branch("main", kRecompressPages * kPageBytes, 0);
  auto writer = BranchWriter::open(*store, "main");
  Model model(kRecompressPages);
  for (int i = 0; i < 8; ++i) {
    for (PageNumber p = 0; p < kRecompressPages; ++p) fill_text(model, p, random);
    commit(*writer, model, true, 1);
    name_head(*writer, model, "s" + std::to_string(i));
  }
  writer.reset();
  ASSERT_GT(recompress().packs, 1u);
  bool large = false;
  for (const std::uint64_t pack : store->packs().list()) {
    const auto header = pack_header(*store, pack);
    const auto size =
        fs.open(store->packs().path_of(pack), base::OpenMode::read_only)->size_bytes();
    large |= header.translation_offset_bytes != 0 &&
             size - header.translation_offset_bytes > 2 * kHoleBytes;
  }
  EXPECT_TRUE(large);
  gc();
  expect_all();
  remove("s1");
  gc();
  expect_all();
}

// One object does all of it: gc must use the files that have the names.
TEST_F(RecompressTest, TheStoreThatHasEverythingOpenCollects) {
  make(10, 60);
  for (const auto& [name, bytes] : contents) expect_same(*open_version(*store, name), bytes);
  EXPECT_GT(recompress().packs, 2u);  // by another
  for (int i = 0; i < 8; ++i) remove("s" + std::to_string(i));
  collect_garbage(*store, false, nullptr);
  expect_all();
  EXPECT_GT(collect_garbage(*store, false, nullptr, kLevel + 2).recompressed.packs, 0u);
  for (const auto& [name, bytes] : contents) expect_same(*open_version(*store, name), bytes);
  EXPECT_GT(stat_store(*store).pack_bytes, 0u);
  expect_no_damage(*store);
  collect_garbage(*store, false, nullptr);
  expect_all();
}

TEST_F(RecompressTest, NamesThatAreHeldStopIt) {
  make(6, 60);
  const auto other = StoreDirectory::open(fs, store->path());
  std::optional<NamesShared> names;
  const auto hold = [&](const Progress& progress) {
    if (std::string(progress.unit) == "bytes" && !names) names.emplace(*other);
  };
  // Detected after the first pack, and before the second gets its name.
  const std::string text = error_text(Errc::busy, [&] {
    collect_garbage(*StoreDirectory::open(fs, store->path()), false, hold, kLevel);
  });
  EXPECT_TRUE(contains(text, "reads the whole store")) << text;
  EXPECT_TRUE(in_tmp().empty());
  names.reset();
  expect_all();
  EXPECT_GT(recompress().packs, 0u);
  expect_all();
}

// Unfinished files have a lock (leftovers_test.cpp); these have none.
TEST_F(RecompressTest, LeftoversGo) {
  make(2, 10);
  const auto put = [&](const std::string& name) {
    fs.open(store->tmp_directory() + "/" + name, base::OpenMode::create_new);
  };
  put(rewritten_file_name(7));
  put(rewritten_file_name(store->packs().list().front()));
  put("journal.123.456.0");
  put("7.rewrite");
  collect_garbage(*store, true, nullptr);
  EXPECT_EQ(in_tmp().size(), 4u);
  gc();
  EXPECT_TRUE(in_tmp().empty());
}

// Every call fails in turn (under sanitizers only the first ones): the store is intact, no file
// remains, and the next run completes the work.
TEST_F(RecompressTest, FailingCallsHurtNothing) {
  constexpr std::uint64_t kEnd = vellum::test::kSanitizer ? 4 : 200;
  int failures = 0;
  for (const Call call : {Call::open, Call::create, Call::write, Call::sync, Call::rename,
                          Call::unlink, Call::sync_dir}) {
    for (std::uint64_t nth = 1; nth < kEnd; nth += nth < 6 ? 1 : 13) {
      const std::string name =
          "f" + std::to_string(static_cast<int>(call)) + "-" + std::to_string(nth);
      make(4, 60, 96u << 10, name.c_str());
      remove("s0");
      remove("s1");
      fs.fail_nth(call, nth, Errc::no_space);
      bool failed = false;
      try {
        gc(1);
      } catch (const Error& e) {
        failed = true;
        EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(Errc::no_space)) << e.what();
      }
      const bool reached = fs.seen(call) >= nth;
      fs.heal();
      failures += failed ? 1 : 0;
      expect_all();
      EXPECT_TRUE(call == Call::unlink || in_tmp().empty());
      gc(1);
      EXPECT_TRUE(in_tmp().empty());
      EXPECT_GT(translated_packs(*store), 0u);
      expect_all();
      std::filesystem::remove_all(store->path());
      if (!reached) break;
    }
  }
  EXPECT_GT(failures, vellum::test::rounds(20, 5));
}

TEST_F(RecompressTest, ProgressMayEndIt) {
  make(6, 60);
  int calls = 0;
  const auto stop = [&](const Progress& progress) {
    if (std::string(progress.unit) == "bytes" && ++calls == 2) throw std::runtime_error("enough");
  };
  EXPECT_THROW(collect_garbage(*StoreDirectory::open(fs, store->path()), false, stop, kLevel),
               std::runtime_error);
  EXPECT_TRUE(in_tmp().empty());
  expect_all();
}

// An unreadable record is reported, and its pack is not changed.
TEST_F(RecompressTest, DamageIsNotWrittenAgain) {
  make(6, 60);
  const auto source = open_version(*store, "s0");
  const auto record = source->chain(0).back().record;
  const std::string pack = store->packs().path_of(record.pack);
  const std::array<std::byte, 1> wrong{std::byte{0x5a}};
  fs.open(pack, base::OpenMode::read_write)->pwrite(wrong, record.offset_bytes + 90);
  const std::string text = error_text(Errc::corrupted, [&] { recompress(); });
  EXPECT_TRUE(contains(text, pack + " at byte " + std::to_string(record.offset_bytes))) << text;
  EXPECT_FALSE(is_translated(*store, record.pack));
  EXPECT_TRUE(in_tmp().empty());
}

// --- data from disk is hostile ---

// A translation may list slots past the end of a record. Only those of the record are cleared: the
// address sanitizer detects a write past its pages.
TEST(RecordEncoderTest, DroppedSlotsPastTheRecordAreIgnored) {
  std::vector<std::byte> raw(2 * kPageBytes);
  for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>(i * i >> 3);
  LoadedRecord record;
  record.header = {.type = format::RecordType::pages,
                   .codec = base::Compression::none,
                   .offset_bytes = format::kPackHeaderBytes,
                   .raw_bytes = 2 * kPageBytes,
                   .items = 2};
  record.raw = raw;
  format::append_record(record.bytes, record.header, {}, raw, 7);
  PlannedRecord plan;
  plan.raw_bytes = plan.stored_bytes = 2 * kPageBytes;
  plan.items = 2;
  plan.dropped = {{1, 1}, {40, 8}};
  plan.held = UINT64_MAX;  // forces encoding without the dropped slots
  const EncodedPayload encoded = RecordEncoder().encode(record, plan, kLevel, true);
  std::vector<std::byte> back(2 * kPageBytes);
  ASSERT_TRUE(base::Decompressor().decompress(encoded.codec, encoded.stored, back));
  EXPECT_TRUE(std::equal(back.begin(), back.begin() + kPageBytes, raw.begin()));
  EXPECT_TRUE(std::all_of(back.begin() + kPageBytes, back.end(),
                          [](std::byte b) { return b == std::byte{0}; }));
}

class TranslationOnDisk : public RecompressTest {
 protected:
  void SetUp() override {
    make(8, 60);
    ASSERT_GT(recompress().packs, 2u);
    for (const std::uint64_t p : store->packs().list()) {
      if (is_translated(*store, p)) pack = p;
      if (pack != 0) break;
    }
    good = translation_of(*store, pack);
    path = store->packs().path_of(pack);
  }
  // Versions that need the pack give errors with its name. verify reports it, too, also without
  // reading data if the table does not parse.
  void expect_refused(const std::string& what, bool parses = false) {
    const auto fresh = StoreDirectory::open(fs, store->path());
    const std::string text = error_text(Errc::corrupted, [&] {
      std::vector<std::byte> out(kRecompressPages * kPageBytes);
      open_version(*fresh, "s0")->read(0, kRecompressPages, out.data());
    });
    EXPECT_TRUE(contains(text, path)) << what << ": " << text;
    for (const bool read_data : {false, true}) {
      if (parses && !read_data) continue;
      const auto report =
          verify_store(*StoreDirectory::open(fs, store->path()), read_data, nullptr);
      ASSERT_FALSE(report.damages.empty()) << what;
      EXPECT_TRUE(contains(report.damages[0].object, path)) << what;
      EXPECT_FALSE(report.damages[0].versions.empty()) << what;
    }
    error_text(Errc::corrupted, [&] { gc(kLevel + 1); });
  }
  void put(const format::Translation& t, const std::string& what, bool parses = false) {
    replace_translation(*store, pack, format::encode_translation(t), t.lines.size());
    expect_refused(what, parses);
  }

  std::uint64_t pack = 0;
  format::Translation good;
  std::string path;
};

TEST_F(TranslationOnDisk, UntouchedIsWhole) {
  replace_translation(*store, pack, format::encode_translation(good), good.lines.size());
  expect_all();
}

TEST_F(TranslationOnDisk, TablesThatCannotBeAreRefused) {
  const std::size_t n = good.lines.size();
  ASSERT_GT(n, 8u);
  format::Translation t = good;
  t.lines[n - 1].new_offset_bytes += 1u << 30;
  put(t, "past the end");
  t = good;
  t.lines[3].new_offset_bytes = t.lines[2].new_offset_bytes + 8;
  put(t, "overlap");
  t = good;
  t.lines[3].old_offset_bytes = t.lines[2].old_offset_bytes + 48;
  put(t, "overlap of old ones");
  t = good;
  t.level = 200;
  put(t, "level");
  auto raw = format::encode_translation(good);
  raw.resize(raw.size() - 1);
  replace_translation(*store, pack, raw, n);
  expect_refused("cut off");
  replace_translation(*store, pack, format::encode_translation(good), n - 1);
  expect_refused("another count");
  raw = {std::byte{3}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0x7f}};
  raw.resize(64);
  replace_translation(*store, pack, raw, 4);
  expect_refused("huge count");
}

TEST_F(TranslationOnDisk, LinesThatLeadAstray) {
  // Each points to another record, or to none: the record's own header and tag reveal it.
  format::Translation t = good;
  for (std::size_t i = 0; i + 1 < t.lines.size(); ++i) {
    t.lines[i].new_offset_bytes = good.lines[i].new_offset_bytes + 8;
  }
  put(t, "not records", true);
  t = good;
  for (auto& line : t.lines) line.new_tag ^= 1;
  put(t, "new tags", true);
  t = good;
  for (auto& line : t.lines) line.old_tag ^= 1;
  put(t, "old tags", true);
  t = good;
  t.lines.erase(t.lines.begin(), t.lines.end() - 1);
  put(t, "missing lines", true);
}

TEST_F(TranslationOnDisk, SlotsThatWereGivenBackAreNeverRead) {
  pretend_given_back(*store, pack, [](const auto&) { return true; });
  const auto fresh = StoreDirectory::open(fs, store->path());
  const std::string text = error_text(Errc::corrupted, [&] {
    std::vector<std::byte> out(kRecompressPages * kPageBytes);
    open_version(*fresh, "s0")->read(0, kRecompressPages, out.data());
  });
  EXPECT_TRUE(contains(text, "gc has freed the page")) << text;
  for (const bool read_data : {false, true}) {
    const auto report = verify_store(*fresh, read_data, nullptr);
    ASSERT_FALSE(report.damages.empty()) << read_data;
    EXPECT_TRUE(contains(report.damages[0].object, path));
    EXPECT_FALSE(report.damages[0].versions.empty());
  }
  const std::string refused = error_text(Errc::corrupted, [&] { recompress(kLevel + 1); });
  EXPECT_TRUE(contains(refused, "needs slots that were freed")) << refused;
}

TEST_F(TranslationOnDisk, NothingIsAppended) {
  // A journal with this pack as its active pack.
  format::Version version = resolve_version(*store, "main").version;
  version.active_pack = pack;
  version.active_pack_end_bytes = 4096;
  const auto path_of = store->packs().path_of(pack);
  const std::string text =
      error_text(Errc::corrupted, [&] { PackWriter(*store, pack >> 32, version); });
  EXPECT_TRUE(contains(text, path_of)) << text;
}

// --- repair ---

TEST_F(RecompressTest, RepairSavesTranslatedPacks) {
  make(8, 60);
  const auto history = contents;
  remove("s1");
  remove("s4");
  ASSERT_GT(recompress().packs, 2u);
  const auto report = repair_store(fs, store->path(), dir.path("saved"), nullptr);
  EXPECT_TRUE(report.lost.empty());
  const auto saved = StoreDirectory::open(fs, dir.path("saved"));
  for (const auto& [name, bytes] : contents) expect_same(*open_version(*saved, name), bytes);
  // The other results are intact states, too.
  for (const auto& name : snapshot_names(*saved)) {
    if (contents.contains(name)) continue;
    std::vector<std::byte> bytes(kRecompressPages * kPageBytes);
    open_version(*saved, name)->read(0, kRecompressPages, bytes.data());
    EXPECT_TRUE(std::any_of(history.begin(), history.end(), [&](const auto& version) {
      return version.second == bytes;
    })) << name;
  }
}

// The head is lost. The version before it is found in the active pack with all of its runs,
// but pages of it were freed inside of blocks: it must not be offered with zeros in their
// place.
TEST_F(RecompressTest, RepairOffersNoVersionWithPagesMissing) {
  make(1, 0, 400u << 10);
  remove("s0");
  std::vector<std::vector<std::byte>> history;
  auto writer = BranchWriter::open(*store, "main");
  Model model(kRecompressPages);
  model.bytes = contents.at("main");
  for (int i = 0; i < 2; ++i) {
    Model now(kRecompressPages);
    now.bytes = model.bytes;
    for (PageNumber n = 0; n < 60; ++n) fill_text(now, 8 * n + static_cast<PageNumber>(i), random);
    commit(*writer, now, true);
    model.bytes = now.bytes;
    history.push_back(now.bytes);
  }
  const std::uint64_t active = writer->head().active_pack;
  writer.reset();
  contents["main"] = model.bytes;
  ASSERT_EQ(store->packs().list().size(), 2u);
  ASSERT_EQ(recompress().packs, 1u);
  expect_all();

  const auto record = open_version(*store, "main")->chain(1).back().record;  // only the head's
  ASSERT_EQ(record.pack, active);
  const std::array<std::byte, 1> wrong{std::byte{0x5a}};
  fs.open(store->packs().path_of(active), base::OpenMode::read_write)
      ->pwrite(wrong, record.offset_bytes + 90);
  const auto report = repair_store(fs, store->path(), dir.path("saved"), nullptr);
  const auto saved = StoreDirectory::open(fs, dir.path("saved"));
  for (const auto& version : report.saved) {
    std::vector<std::byte> bytes(kRecompressPages * kPageBytes);
    open_version(*saved, version.name)->read(0, kRecompressPages, bytes.data());
    EXPECT_TRUE(std::find(history.begin(), history.end(), bytes) != history.end())
        << version.name << ", " << version.origin;
  }
}

// --- power cuts, at every change of the medium ---

using Contents = std::map<std::string, std::vector<std::byte>>;

// A store in which a recompression has something to do and something to free.
Contents make_store_to_recompress(base::Fs& fs, std::mt19937_64& random) {
  Contents contents;
  format::Superblock options = small_options();
  options.pack_bytes = 16u << 10;
  auto store = StoreDirectory::create(fs, "/s", options);
  store->create_branch("main", 64 * kPageBytes, 0);
  auto writer = BranchWriter::open(*store, "main");
  Model model(64);
  for (PageNumber p = 0; p < 64; ++p) fill_text(model, p, random);
  for (int i = 0; i < 5; ++i) {
    for (int n = 0; n < 20; ++n) fill_text(model, random() % 64, random);
    commit(*writer, model, true);
    const std::string name = "s" + std::to_string(i);
    writer->publish_snapshot(name, "");
    contents[name] = contents["main"] = model.bytes;
  }
  writer.reset();
  for (const char* name : {"s0", "s1"}) {
    store->remove_snapshot(name);
    contents.erase(name);
  }
  return contents;
}

void expect_contents_after_recompression(StoreDirectory& store, const Contents& contents) {
  for (const auto& [name, bytes] : contents) expect_same(*open_version(store, name), bytes);
  expect_no_damage(store);
}

// The same again, by the next program.
void recompress_again(sim::SimFs& disk, const Contents& contents) {
  collect_garbage(*StoreDirectory::open(disk, "/s"), false, nullptr, kLevel);
  expect_contents_after_recompression(*StoreDirectory::open(disk, "/s"), contents);
  for (const auto& entry : disk.list("/s/tmp")) {
    EXPECT_FALSE(is_rewritten_file_name(entry.name)) << entry.name;
  }
}

TEST(RecompressCrash, EveryPowerCutLeavesAWholeStore) {
  constexpr std::size_t kAtWork = 1;
  std::mt19937_64 random(5);
  sim::SimFs fs;
  fs.start_log();
  const Contents contents = make_store_to_recompress(fs, random);
  fs.allow_states(kAtWork, kAtWork);
  collect_garbage(*StoreDirectory::open(fs, "/s"), false, nullptr, kLevel);
  fs.stop_log();
  std::uint64_t images = 0, translated = 0;
  sim::each_image_once(fs, kAtWork, {4, 6, 4, 4}, [&](const sim::Disk& image) {
    if (testing::Test::HasFailure()) return;
    sim::SimFs disk(image);
    const auto store = StoreDirectory::open(disk, "/s");
    translated += translated_packs(*store);
    expect_contents_after_recompression(*store, contents);
    if (images++ % 4 == 0) recompress_again(disk, contents);
  });
  std::printf("  %llu images, %llu translated packs in them\n",
              static_cast<unsigned long long>(images), static_cast<unsigned long long>(translated));
  EXPECT_GT(images, 100u);
  EXPECT_GT(translated, images / 2);
}

}  // namespace
}  // namespace vellum::store::test
