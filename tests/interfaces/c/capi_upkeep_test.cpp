// The C interface to a store as a whole: space, checks, repair, tiers, retention, differences,
// imports, and callbacks that end a call.
#include <gtest/gtest.h>
#include <vellum/vellum.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>
#include <vellum/store.hpp>
#include <vellum/version.hpp>

#include "base/temp_directory.hpp"

namespace {

constexpr std::uint64_t kUpkeepBytes = 1 << 20;

class CUpkeepTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = directory_.path() + "/store";
    vellum_store_options small = VELLUM_STORE_OPTIONS_INIT;
    small.pack_bytes = 1 << 20;  // tiers hold packs that are full
    ASSERT_EQ(vellum_store_create(path_.c_str(), &small, &store_), VELLUM_OK) << message();
    vellum_region_options options = VELLUM_REGION_OPTIONS_INIT;
    options.capacity_bytes = 64 * kUpkeepBytes;  // the default does not fit under ThreadSanitizer
    options.no_background_gc = 1;                // vellum_gc() is to find something
    ASSERT_EQ(vellum_region_create(store_, "main", kUpkeepBytes, &options, &region_), VELLUM_OK)
        << message();
  }
  void TearDown() override {
    vellum_region_close(region_);
    vellum_store_close(store_);
  }

  static std::string message() { return vellum_error_message(); }

  // Fills the region with data that does not compress, and keeps it as a snapshot.
  void snapshot(const char* name, std::uint64_t seed) {
    auto* words = static_cast<std::uint64_t*>(vellum_region_data(region_));
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < kUpkeepBytes / 8; ++i) words[i] = random();
    ASSERT_EQ(vellum_snapshot(region_, name, nullptr, nullptr), VELLUM_OK) << message();
  }

  void close_region() {
    vellum_region_close(region_);
    region_ = nullptr;
  }

  void damage_packs() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_ + "/packs")) {
      std::fstream pack(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      pack.seekp(static_cast<std::streamoff>(entry.file_size() / 2));
      pack.write("damage", 6);
    }
  }

  std::string name_of(const char* file) const { return directory_.path() + "/" + file; }

  vellum::test::TempDirectory directory_;
  std::string path_;
  vellum_store* store_ = nullptr;
  vellum_region* region_ = nullptr;
};

struct Ticks {
  int seen = 0;
  int stop_at = 0;  // 0: never
};
int tick(uint64_t, uint64_t, const char* unit, void* context) {
  auto& ticks = *static_cast<Ticks*>(context);
  EXPECT_NE(unit, nullptr);
  return ++ticks.seen == ticks.stop_at ? 1 : 0;
}

TEST(CVersion, IsThatOfTheHeadersAndOfBothInterfaces) {
  EXPECT_STREQ(vellum_version(), VELLUM_VERSION_STRING);
  EXPECT_STREQ(vellum::version(), VELLUM_VERSION_STRING);
  EXPECT_EQ(std::to_string(VELLUM_VERSION_MAJOR) + "." + std::to_string(VELLUM_VERSION_MINOR) +
                "." + std::to_string(VELLUM_VERSION_PATCH),
            VELLUM_VERSION_STRING);
}

TEST_F(CUpkeepTest, AStoreReportsItsPathIdAndOptions) {
  EXPECT_STREQ(vellum_store_path(store_), path_.c_str());
  EXPECT_EQ(vellum_store_path(nullptr), nullptr);
  char id[33] = "";
  ASSERT_EQ(vellum_store_id(store_, id), VELLUM_OK) << message();
  EXPECT_EQ(vellum::Store::open(path_).id(), id);
  vellum_store_options options = VELLUM_STORE_OPTIONS_INIT;
  ASSERT_EQ(vellum_store_get_options(store_, &options), VELLUM_OK) << message();
  ASSERT_NE(options.encoding, nullptr);
  EXPECT_EQ(options.encoding->struct_size, sizeof(vellum_encoding));
  EXPECT_EQ(options.encoding->compression, VELLUM_COMPRESSION_ZSTD);
  EXPECT_EQ(options.encoding->block_bytes, vellum::Encoding().block_bytes);
  EXPECT_EQ(options.pack_bytes, 1U << 20);
  EXPECT_EQ(options.journal_half_bytes, vellum::StoreOptions().journal_half_bytes);
}

TEST_F(CUpkeepTest, OneVersionIsFoundByName) {
  snapshot("s", 1);
  std::string found;
  const auto keep = [](const vellum_version_info* version, void* context) {
    *static_cast<std::string*>(context) = version->name;
    return 0;
  };
  ASSERT_EQ(vellum_find_version(store_, "s", keep, &found), VELLUM_OK) << message();
  EXPECT_EQ(found, "s");
  EXPECT_EQ(vellum_find_version(store_, "none", keep, &found), VELLUM_ERR_NOT_FOUND);
}

TEST_F(CUpkeepTest, ABranchReportsItsImage) {
  vellum_region* mapped = nullptr;
  vellum_region_options options = VELLUM_REGION_OPTIONS_INIT;
  options.capacity_bytes = kUpkeepBytes;
  const std::string image = name_of("image");
  options.image_path = image.c_str();
  ASSERT_EQ(vellum_region_create(store_, "filed", kUpkeepBytes, &options, &mapped), VELLUM_OK)
      << message();
  vellum_region_close(mapped);
  struct FoundImage {
    std::string path;
    int in_use = -1, changed = -1;
  } found;
  const auto keep = [](const vellum_branch_image* given, void* context) {
    *static_cast<FoundImage*>(context) = {given->path, given->in_use, given->changed};
  };
  ASSERT_EQ(vellum_find_branch_image(store_, "filed", keep, &found), VELLUM_OK) << message();
  EXPECT_EQ(found.path, image);
  EXPECT_EQ(found.in_use, 0);
  EXPECT_EQ(found.changed, 0);
  EXPECT_EQ(vellum_find_branch_image(store_, "none", keep, &found), VELLUM_ERR_NOT_FOUND);
}

TEST_F(CUpkeepTest, StatReportsTheSpaceOfEachVersion) {
  snapshot("s", 1);
  std::vector<std::string> names;
  const auto keep = [](const vellum_version_space* space, void* context) {
    EXPECT_EQ(space->region_bytes, kUpkeepBytes);
    static_cast<std::vector<std::string>*>(context)->emplace_back(space->name);
  };
  vellum_store_stat stat = VELLUM_STORE_STAT_INIT;
  ASSERT_EQ(vellum_stat(store_, &stat, keep, &names), VELLUM_OK) << message();
  EXPECT_EQ(names, (std::vector<std::string>{"s", "main"}));
  EXPECT_GE(stat.pack_needed_bytes, kUpkeepBytes);
}

TEST_F(CUpkeepTest, GcFreesUnneededSpace) {
  snapshot("one", 1);
  snapshot("two", 2);
  close_region();  // an open version keeps its data
  ASSERT_EQ(vellum_remove(store_, "one"), VELLUM_OK) << message();
  vellum_gc_options look = VELLUM_GC_OPTIONS_INIT;
  look.dry_run = 1;
  vellum_gc_report report = VELLUM_GC_REPORT_INIT;
  ASSERT_EQ(vellum_gc(store_, &look, &report, nullptr, nullptr), VELLUM_OK) << message();
  EXPECT_GE(report.freeable_bytes, kUpkeepBytes / 2);
  EXPECT_EQ(report.freed_bytes, 0U);
  Ticks ticks;
  ASSERT_EQ(vellum_gc(store_, nullptr, &report, tick, &ticks), VELLUM_OK) << message();
  EXPECT_GT(ticks.seen, 0);
  EXPECT_EQ(report.snapshots, 1U);
  if (report.holes_supported == 1) {
    EXPECT_GE(report.freed_bytes, kUpkeepBytes / 2);
  }
  look.recompress_level = 20;
  EXPECT_EQ(vellum_gc(store_, &look, &report, nullptr, nullptr), VELLUM_ERR_INVALID_ARGUMENT);
}

TEST_F(CUpkeepTest, ProgressEndsACall) {
  snapshot("one", 1);
  Ticks ticks{0, 1};
  EXPECT_EQ(vellum_gc(store_, nullptr, nullptr, tick, &ticks), VELLUM_ERR_STOPPED);
  EXPECT_STREQ(vellum_errc_name(VELLUM_ERR_STOPPED), "stopped");
  const std::string file = name_of("file");
  ticks = {0, 1};
  EXPECT_EQ(vellum_export(store_, "one", file.c_str(), tick, &ticks), VELLUM_ERR_STOPPED);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(vellum_export(store_, "one", file.c_str(), nullptr, nullptr), VELLUM_OK) << message();
}

TEST_F(CUpkeepTest, DiffVisitsTheBytesThatDiffer) {
  auto* bytes = static_cast<char*>(vellum_region_data(region_));
  bytes[10] = 1;
  ASSERT_EQ(vellum_snapshot(region_, "a", nullptr, nullptr), VELLUM_OK) << message();
  bytes[10] = 2;
  bytes[9000] = 3;
  ASSERT_EQ(vellum_snapshot(region_, "b", nullptr, nullptr), VELLUM_OK) << message();
  std::vector<std::uint64_t> offsets;
  const auto keep = [](const vellum_byte_range* range, void* context) {
    EXPECT_EQ(range->length_bytes, 1U);
    auto& to = *static_cast<std::vector<std::uint64_t>*>(context);
    to.push_back(range->offset_bytes);
    return to.size() == 3 ? 1 : 0;
  };
  vellum_diff_totals totals = VELLUM_DIFF_TOTALS_INIT;
  ASSERT_EQ(vellum_diff(store_, "a", "b", keep, &offsets, &totals), VELLUM_OK) << message();
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{10, 9000}));
  EXPECT_EQ(totals.bytes_different, 2U);
  EXPECT_EQ(totals.pages_different, 2U);
  EXPECT_EQ(vellum_diff(store_, "a", "b", keep, &offsets, nullptr), VELLUM_ERR_STOPPED);
  EXPECT_EQ(vellum_diff(store_, "a", "b", nullptr, nullptr, nullptr), VELLUM_OK) << message();
  EXPECT_EQ(vellum_diff(store_, "a", "none", nullptr, nullptr, nullptr), VELLUM_ERR_NOT_FOUND);
}

TEST_F(CUpkeepTest, StreamsAndVersionsAreImported) {
  struct Source {
    std::string left;
    bool fails = false;
  } source{std::string(5000, 'x'), false};
  const auto give = [](void* to, size_t capacity, void* context) -> int64_t {
    auto& from = *static_cast<Source*>(context);
    if (from.fails) return -1;
    const std::size_t n = std::min(capacity, from.left.size());
    std::memcpy(to, from.left.data(), n);
    from.left.erase(0, n);
    return static_cast<int64_t>(n);
  };
  ASSERT_EQ(vellum_import_stream(store_, "in", give, 100, "m", nullptr, nullptr, &source),
            VELLUM_OK)
      << message();
  char last = 0;
  ASSERT_EQ(vellum_read(store_, "in", 4999, &last, 1), VELLUM_OK) << message();
  EXPECT_EQ(last, 'x');
  source.fails = true;
  EXPECT_EQ(vellum_import_stream(store_, "cut", give, 100, nullptr, nullptr, nullptr, &source),
            VELLUM_ERR_STOPPED);
  EXPECT_FALSE(vellum::Store::open(path_).contains("cut"));

  vellum_store* other = nullptr;
  ASSERT_EQ(vellum_store_create(name_of("other").c_str(), nullptr, &other), VELLUM_OK);
  vellum_commit_report report = VELLUM_COMMIT_REPORT_INIT;
  EXPECT_EQ(vellum_import_version(other, "copy", store_, "in", nullptr, &report, nullptr, nullptr),
            VELLUM_OK)
      << message();
  EXPECT_EQ(report.pages_changed, 2U);
  vellum_store_close(other);
}

TEST_F(CUpkeepTest, VerifyNamesEachDamage) {
  snapshot("s", 1);
  close_region();
  damage_packs();
  std::vector<std::string> hurt;
  const auto keep = [](const vellum_damage* damage, void* context) {
    EXPECT_NE(std::string(damage->object).find("pack"), std::string::npos);
    for (size_t i = 0; i < damage->version_count; ++i) {
      static_cast<std::vector<std::string>*>(context)->emplace_back(damage->versions[i]);
    }
  };
  vellum_verify_options options = VELLUM_VERIFY_OPTIONS_INIT;
  options.read_data = 1;
  vellum_verify_report report = VELLUM_VERIFY_REPORT_INIT;
  EXPECT_EQ(vellum_verify(store_, &options, &report, keep, nullptr, &hurt), VELLUM_ERR_CORRUPTED);
  EXPECT_GE(report.damages, 1U);
  EXPECT_FALSE(hurt.empty());
}

TEST_F(CUpkeepTest, RepairSavesWholeVersions) {
  snapshot("s", 1);
  close_region();
  const std::string whole = name_of("whole"), part = name_of("part");
  vellum_repair_report report = VELLUM_REPAIR_REPORT_INIT;
  vellum_repair_options options = VELLUM_REPAIR_OPTIONS_INIT;
  options.dry_run = 1;
  ASSERT_EQ(vellum_repair(path_.c_str(), nullptr, &options, &report, nullptr, nullptr, nullptr),
            VELLUM_OK)
      << message();
  EXPECT_EQ(report.saved, 2U);
  EXPECT_EQ(report.pages_written, 0U);
  ASSERT_EQ(
      vellum_repair(path_.c_str(), whole.c_str(), nullptr, &report, nullptr, nullptr, nullptr),
      VELLUM_OK)
      << message();
  EXPECT_EQ(report.exact, 2U);
  EXPECT_TRUE(vellum::Store::open(whole).contains("s"));
  EXPECT_EQ(
      vellum_repair(path_.c_str(), whole.c_str(), nullptr, &report, nullptr, nullptr, nullptr),
      VELLUM_ERR_ALREADY_EXISTS);
  EXPECT_EQ(vellum_repair(path_.c_str(), nullptr, nullptr, &report, nullptr, nullptr, nullptr),
            VELLUM_ERR_INVALID_ARGUMENT);

  damage_packs();
  std::vector<std::string> lost;
  const auto keep = [](const vellum_repaired_version* version, void* context) {
    if (version->reason != nullptr) {
      static_cast<std::vector<std::string>*>(context)->emplace_back(version->name);
    }
  };
  EXPECT_EQ(vellum_repair(path_.c_str(), part.c_str(), nullptr, &report, keep, nullptr, &lost),
            VELLUM_ERR_CORRUPTED);
  EXPECT_EQ(report.lost, lost.size());
  EXPECT_NE(std::find(lost.begin(), lost.end(), "snapshot 's'"), lost.end());
}

TEST_F(CUpkeepTest, TiersAreAddedListedAndRemoved) {
  const std::string archive = name_of("archive"), cache = name_of("cache");
  vellum_tier_move move = VELLUM_TIER_MOVE_INIT;
  for (const char* name : {"a", "bc", "def"}) snapshot(name, std::strlen(name));
  close_region();
  EXPECT_EQ(vellum_move_packs(store_, &move, nullptr, nullptr, nullptr), VELLUM_ERR_NOT_FOUND);
  ASSERT_EQ(vellum_add_archive(store_, archive.c_str()), VELLUM_OK) << message();
  ASSERT_EQ(vellum_add_cache(store_, cache.c_str(), 1 << 20), VELLUM_OK) << message();
  ASSERT_EQ(vellum_limit_tier(store_, "", 5 << 20), VELLUM_OK) << message();
  std::vector<std::pair<int, std::uint64_t>> seen;
  const auto keep = [](const vellum_tier* tier, void* context) {
    EXPECT_EQ(tier->present, 1);
    static_cast<std::vector<std::pair<int, std::uint64_t>>*>(context)->emplace_back(
        tier->kind, tier->limit_bytes);
  };
  ASSERT_EQ(vellum_tiers(store_, keep, &seen), VELLUM_OK) << message();
  EXPECT_EQ(seen, (std::vector<std::pair<int, std::uint64_t>>{{VELLUM_TIER_HOME, 5 << 20},
                                                              {VELLUM_TIER_ARCHIVE, 0},
                                                              {VELLUM_TIER_CACHE, 1 << 20}}));

  vellum_tier_report report = VELLUM_TIER_REPORT_INIT;
  vellum_apply_tiers_options look = VELLUM_APPLY_TIERS_OPTIONS_INIT;
  look.dry_run = 1;
  ASSERT_EQ(vellum_apply_tiers(store_, &look, &report, nullptr, nullptr), VELLUM_OK) << message();
  ASSERT_EQ(vellum_move_packs(store_, &move, &report, nullptr, nullptr), VELLUM_OK) << message();
  EXPECT_GT(report.packs_moved, 0U);
  EXPECT_EQ(vellum_remove_tier(store_, archive.c_str()), VELLUM_ERR_BUSY);
  move.to_home = 1;
  ASSERT_EQ(vellum_move_packs(store_, &move, &report, nullptr, nullptr), VELLUM_OK) << message();
  ASSERT_EQ(vellum_remove_tier(store_, archive.c_str()), VELLUM_OK) << message();
}

TEST_F(CUpkeepTest, RetentionNamesTheRuleThatKeepsASnapshot) {
  snapshot("one", 1);
  snapshot("two", 2);
  snapshot("other", 3);
  vellum_retention_policy policy = VELLUM_RETENTION_POLICY_INIT;
  std::vector<std::string> lines;
  const auto keep = [](const vellum_version_info* version, const char* const* kept_by, size_t count,
                       void* context) {
    std::string line = version->name;
    for (size_t i = 0; i < count; ++i) line += std::string(" ") + kept_by[i];
    static_cast<std::vector<std::string>*>(context)->push_back(line);
    return 0;
  };
  EXPECT_EQ(vellum_decide_retention(store_, &policy, keep, &lines), VELLUM_ERR_INVALID_ARGUMENT);
  policy.keep_last = 1;
  ASSERT_EQ(vellum_decide_retention(store_, &policy, keep, &lines), VELLUM_OK) << message();
  EXPECT_EQ(lines, (std::vector<std::string>{"other last", "two", "one"}));
  lines.clear();
  policy.prefix = "t";
  policy.branch = "main";
  ASSERT_EQ(vellum_decide_retention(store_, &policy, keep, &lines), VELLUM_OK) << message();
  EXPECT_EQ(lines, (std::vector<std::string>{"two last"}));
  lines.clear();
  policy.branch = "none";
  ASSERT_EQ(vellum_decide_retention(store_, &policy, keep, &lines), VELLUM_OK) << message();
  EXPECT_TRUE(lines.empty());
}

TEST_F(CUpkeepTest, NullIsRefused) {
  const auto refused = [](int code) {
    EXPECT_EQ(code, VELLUM_ERR_INVALID_ARGUMENT);
    EXPECT_NE(message().find("NULL"), std::string::npos) << message();
  };
  refused(vellum_store_id(store_, nullptr));
  refused(vellum_store_get_options(store_, nullptr));
  refused(vellum_find_version(store_, "main", nullptr, nullptr));
  refused(vellum_find_branch_image(store_, nullptr, nullptr, nullptr));
  refused(vellum_gc(nullptr, nullptr, nullptr, nullptr, nullptr));
  refused(vellum_diff(store_, nullptr, "b", nullptr, nullptr, nullptr));
  refused(vellum_import_stream(store_, "b", nullptr, 0, nullptr, nullptr, nullptr, nullptr));
  refused(vellum_import_version(store_, "b", nullptr, "c", nullptr, nullptr, nullptr, nullptr));
  refused(vellum_repair(nullptr, "b", nullptr, nullptr, nullptr, nullptr, nullptr));
  refused(vellum_tiers(store_, nullptr, nullptr));
  refused(vellum_add_archive(store_, nullptr));
  refused(vellum_add_cache(store_, nullptr, 0));
  refused(vellum_remove_tier(store_, nullptr));
  refused(vellum_limit_tier(store_, nullptr, 0));
  refused(vellum_move_packs(store_, nullptr, nullptr, nullptr, nullptr));
  refused(vellum_apply_tiers(nullptr, nullptr, nullptr, nullptr, nullptr));
  refused(vellum_decide_retention(store_, nullptr, nullptr, nullptr));
}

}  // namespace
