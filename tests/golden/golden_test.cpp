// The promise of docs/format.md: every golden store of every format is opened, compared with the
// content of the same steps in memory, extended, collected and verified. The stores must also keep
// their coverage: each type of record and frame, each codec, each kind of file.
#include "golden/golden_lib.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <vellum/atomic_file.hpp>
#include <vellum/datastore.hpp>
#include <vellum/store.hpp>

#include "base/round_up.hpp"
#include "base/temp_directory.hpp"
#include "format/layout.hpp"
#include "format/wire/number.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/journal/journal_state.hpp"
#include "store/packs/pack_scanner.hpp"

namespace vellum::golden {
namespace {

namespace fs = std::filesystem;

// The contents of a golden store, as the readers of the format report them.
struct Tally {
  std::set<format::RecordType> records;
  std::set<std::uint8_t> codecs;  // of records of pages: the bytes on disk
  std::set<format::PartType> parts;
  std::set<format::FrameType> frames;
  bool hash = false;            // a record with a SHA-256
  bool trailer = false;         // a sealed pack
  bool translation = false;     // a translated pack
  bool own_encoding = false;    // a branch with its own encoding
  bool file_bytes = false;      // a version that is a plain file
  std::set<std::string> files;  // magic numbers at the front of files
};

bool is_pack(const fs::path& path) { return path.extension() == ".pack"; }

std::string magic_of(const fs::path& path) {
  char magic[8] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return {magic, sizeof magic};
}

void count_pack(const fs::path& path, std::uint64_t seed, Tally& tally) {
  const auto file = base::posix_fs().open(path, base::OpenMode::read_only);
  format::PackHeader header;
  std::array<std::byte, format::kPackHeaderBytes> bytes;
  file->pread(bytes, 0);
  ASSERT_TRUE(format::decode_pack_header(bytes, header)) << path;
  std::array<std::byte, format::kPackTrailerBytes> end;
  file->pread(end, file->size_bytes() - end.size());
  std::uint64_t index = 0;
  tally.trailer |= format::decode_pack_trailer(end, header.pack, seed, index);
  tally.translation |= header.translation_offset_bytes != 0;

  store::PackScanner scanner(*file, header.pack, seed, format::kPackHeaderBytes,
                             file->size_bytes());
  for (format::RecordHeader h; scanner.next(h);) {
    tally.records.insert(h.type);
    if (h.type == format::RecordType::pages) tally.codecs.insert(base::codec_byte(h.codec));
    tally.hash |= h.has_hash;
  }
}

// The frames of both halves of a journal, each as long as it follows its predecessor, and the
// marker after them.
void count_frames(const fs::path& path, const store::JournalState& journal, std::uint64_t seed,
                  Tally& tally) {
  const auto file = base::posix_fs().open(path, base::OpenMode::read_only);
  Bytes half(journal.header.half_bytes);
  for (std::uint64_t i = 0; i < 2; ++i) {
    file->pread(half, format::kJournalHeaderBytes + i * half.size());
    format::FrameHeader frame;
    std::span<const std::byte> payload;
    const auto is_frame_at = [&](std::size_t at) {
      if (!format::decode_frame(std::span(half).subspan(at), seed, frame, payload)) return false;
      tally.frames.insert(frame.type);
      return true;
    };
    std::size_t end = 0;
    while (is_frame_at(end)) end += static_cast<std::size_t>(format::frame_extent_bytes(frame));
    is_frame_at(base::round_up(end, kPageBytes));
  }
}

void count_store(const fs::path& path, Tally& tally) {
  const auto core = store::StoreDirectory::open(base::posix_fs(), path);
  for (const auto& name : core->branch_names()) {
    const auto head = core->read_branch(name).journal;
    count_frames(path / "branches" / name / "journal", head,
                 core->checksum_seed() ^ head.header.branch_id, tally);
    tally.own_encoding |= head.header.encoding.has_value();
    for (const auto& commit : head.commits) {
      for (const auto& part : commit.parts) tally.parts.insert(part.type);
    }
  }
  for (const auto& name : snapshot_names(*core)) {
    tally.file_bytes |= read_snapshot(*core, name).version.file_bytes.has_value();
  }
  for (const auto& entry : fs::recursive_directory_iterator(path.parent_path())) {
    if (!entry.is_regular_file()) continue;
    tally.files.insert(magic_of(entry.path()));
    if (is_pack(entry.path())) count_pack(entry.path(), core->checksum_seed(), tally);
  }
}

template <typename Kind>
std::vector<std::string> missing(std::span<const format::Number> table,
                                 const std::set<Kind>& found) {
  std::vector<std::string> out;
  for (const auto& number : table) {
    if (!found.contains(static_cast<Kind>(number.value))) out.push_back(number.name);
  }
  return out;
}

Bytes read(const Store& store, const std::string& name) {
  Bytes out(store.version(name).region_bytes);
  store.read(name, 0, out.data(), out.size());
  return out;
}

void expect_contents(const Store& store, const std::map<std::string, Bytes>& expected) {
  for (const auto& [name, content] : expected) {
    if (!store.contains(name)) continue;  // was removed; use() counts
    EXPECT_TRUE(read(store, name) == content) << name;
  }
}

RegionOptions options() {
  RegionOptions out;
  out.background_gc = false;
  return out;
}

// Commits and snapshots of every branch.
void extend(Store& store, std::map<std::string, Bytes>& expected) {
  for (const auto& version : store.versions()) {
    if (!version.is_branch) continue;
    Region region = store.open_region(version.name, options());
    const auto bytes = std::span(static_cast<std::byte*>(region.data()), region.size_bytes());
    for (const GoldenStep& step : {GoldenStep{"", Fill::text, 2, 3, 90, nullptr},
                                   GoldenStep{"", Fill::touch, 0, 4, 91, nullptr}}) {
      if (bytes.size() < 5 * kPageBytes) continue;
      put(step, bytes);
      region.commit("extended");
    }
    region.snapshot("new-" + version.name);
    expected[version.name] = expected["new-" + version.name] = Bytes(bytes.begin(), bytes.end());
  }
}

void expect_whole(const Store& store) {
  for (const auto& damage : store.verify({.read_data = true}).damages) {
    ADD_FAILURE() << damage.object << ": " << damage.reason;
  }
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_secret(kSlotKinds[0]); }
  void TearDown() override { set_key_source(key_source_of_environment()); }
  bool is_encrypted() const { return GetParam() == kSealedFormat; }
  void use_secret(KeySlot::Kind kind) { set_key_source(secret(kind, secrets_.path())); }
  // A copy of a golden store: the directory in the archive.
  fs::path unpack(const std::string& name) const {
    const fs::path archive =
        fs::path(VELLUM_SOURCE_DIR) / "tests/golden" / GetParam() / (name + ".tar.gz");
    const fs::path to = directory_ / name;
    fs::create_directories(to);
    const std::string command = "tar -C '" + to.string() + "' -xzf '" + archive.string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return to;
  }
  // Runs all operations of a store.
  void use(const fs::path& path, std::map<std::string, Bytes> expected,
           std::size_t least_versions) {
    {
      Store store = Store::open(path);
      expect_whole(store);
      expect_contents(store, expected);
      EXPECT_GE(store.versions().size(), least_versions);
      extend(store, expected);
      expect_contents(store, expected);
      store.collect_garbage();
      GcOptions recompress;
      recompress.recompress_level = 3;
      store.collect_garbage(recompress);
      expect_contents(store, expected);
    }
    Store again = Store::open(path);
    expect_contents(again, expected);
    expect_whole(again);
  }

  vellum::test::TempDirectory directory_, secrets_;
};

TEST_P(Golden, TheStoresCoverAllOfTheFormat) {
  Tally tally;
  for (const char* name : {"codecs", "history", "packs", "tiers", "beside", "moved"})
    count_store(unpack(name) / "store", tally);
  const auto none = testing::ElementsAre();
  EXPECT_THAT(missing(format::kRecordTypeNumbers, tally.records), none);
  EXPECT_THAT(missing(format::kCodecNumbers, tally.codecs), none);
  EXPECT_THAT(missing(format::kPartTypeNumbers, tally.parts), none);
  EXPECT_THAT(missing(format::kFrameTypeNumbers, tally.frames), none);
  EXPECT_TRUE(tally.hash);
  EXPECT_TRUE(tally.trailer);
  EXPECT_TRUE(tally.translation);
  EXPECT_TRUE(tally.own_encoding);
  EXPECT_TRUE(tally.file_bytes);
  for (const char* magic :
       {format::kSuperblockMagic, format::kPackMagic, format::kJournalMagic, format::kSnapshotMagic,
        format::kSnapshotOrderMagic, format::kGcCensusMagic, format::kSpaceNoteMagic,
        format::kWorkingSetMagic, format::kTiersMagic, format::kTierIdMagic}) {
    EXPECT_TRUE(tally.files.contains(magic)) << magic;
  }
  EXPECT_EQ(tally.files.contains(format::kKeySlotsMagic), is_encrypted());
}

TEST_P(Golden, EachSecretOpensAnEncryptedStore) {
  const fs::path path = unpack("moved") / "store";
  const auto expected = contents(histories()[5]);
  for (const KeySlot::Kind kind : kSlotKinds) {
    use_secret(kind);
    expect_contents(Store::open(path), expected);
  }
  set_key_source(KeySource());
  if (!is_encrypted()) return;
  try {
    static_cast<void>(Store::open(path));
    FAIL() << "opened without a secret";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::wrong_key) << e.what();
  }
}

TEST_P(Golden, AStoreIsReadExtendedCollectedAndVerified) {
  for (const History& history : histories()) {
    if (history.name == std::string("tiers")) continue;
    SCOPED_TRACE(history.name);
    auto expected = contents(history);
    const std::size_t versions = history.name == std::string("packs") ? 5 : expected.size();
    use(unpack(history.name) / "store", expected, versions);
  }
}

TEST_P(Golden, ABranchThatIsAFileHasItsBytes) {
  const fs::path path = unpack("history") / "store";
  const Store store = Store::open(path);
  EXPECT_EQ(store.version("file-1").file_bytes, 10'000u);
  store.export_file("file-1", directory_ / "out");
  std::ifstream in(directory_ / "out", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(text, metadata(7) + std::string(10'000 - metadata(7).size(), 'f'));
  if (is_encrypted()) return;
  const Bytes image = read(store, "image");
  EXPECT_EQ(std::memcmp(image.data(), metadata(8).data(), metadata(8).size()), 0);
}

// The copy reads its tiers in place; it claims them before it writes.
TEST_P(Golden, TiersAreTakenOver) {
  const fs::path path = unpack("tiers");
  {
    Store store = Store::open(path / "store");
    ASSERT_EQ(store.tiers().size(), 3u);
    store.add_archive(path / "archive");
    store.add_cache(path / "cache");
    EXPECT_GT(store.stat().archive_packs, 0u);
    EXPECT_GT(store.stat().cache_copies, 0u);
  }
  use(path / "store", contents(histories()[3]), 5);
  Store store = Store::open(path / "store");
  TierMove home;
  home.to_archive = false;
  EXPECT_GT(store.move_packs(home).packs_moved, 0u);
  expect_whole(store);
}

TEST_P(Golden, ADatastoreOpensWithItsFiles) {
  if (is_encrypted()) return;
  const std::string path = unpack("datastore") / "data";
  const auto expect = [&](const std::string& at, std::uint64_t seed) {
    const Datastore data = Datastore::open_read_only(at);
    EXPECT_EQ(std::memcmp(data.segment(), segment(seed).data(), kSegmentBytes), 0) << at;
    std::ifstream in(Datastore::files_directory(at) + "/" + kMetadata);
    EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), metadata(seed)) << at;
  };
  expect(path, 2);
  expect(path + "@one", 1);
  {
    Datastore data = Datastore::open(path, 1 << 30);
    std::memcpy(data.segment(), segment(3).data(), kSegmentBytes);
    std::ofstream(Datastore::files_directory(path) + "/" + kMetadata) << metadata(3);
    data.snapshot(path + "@three");
  }
  expect(path, 3);
  expect(path + "@one", 1);
  Store::open(path + "/store").collect_garbage();
  expect_whole(Store::open(path + "/store"));
}

TEST_P(Golden, AnAtomicFileGetsTheCommitsOfItsJournal) {
  if (is_encrypted()) return;
  const std::string path = unpack("atomic") / "file";
  Bytes before(kAtomicBytes);
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(before.data()), static_cast<std::streamsize>(before.size()));
  EXPECT_NE(before, atomic_content(kAtomicCommits)) << "the journal has no commits to apply";
  RecoveryOptions copied;
  copied.copied = true;
  EXPECT_EQ(AtomicFile::recover(path, copied).commits, kAtomicCommits);
  AtomicFile file = AtomicFile::open(path);
  const Bytes expected = atomic_content(kAtomicCommits);
  EXPECT_EQ(std::memcmp(file.data(), expected.data(), expected.size()), 0);
  static_cast<char*>(file.data())[7] = 'x';
  file.commit();
}

// Every existing directory: the next minor format adds its own.
std::vector<std::string> formats() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(fs::path(VELLUM_SOURCE_DIR) / "tests/golden")) {
    if (entry.is_directory()) out.push_back(entry.path().filename());
  }
  return out;
}

TEST(GoldenFormats, TheCurrentFormatsAreAmongThem) {
  EXPECT_EQ(format::number_text(format::kFormatVersion), kFormat);
  EXPECT_EQ(format::number_text(format::kSealedFormatVersion), kSealedFormat);
  for (const char* current : {kFormat, kSealedFormat}) {
    EXPECT_THAT(formats(), testing::Contains(current));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Golden, testing::ValuesIn(formats()), [](const auto& info) {
  std::string name = "format_" + info.param;
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace vellum::golden
