// The C interface: every function matches its C++ counterpart, no exception crosses, errors have a
// number and a message, and structs of older and newer callers are served.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vellum/cards.h>
#include <vellum/vellum.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>
#include <vellum/error.hpp>
#include <vellum/store.hpp>

#include "interfaces/c/capi_fixture.hpp"

namespace {

using vellum::test::CApiTest;
using vellum::test::kCRegionBytes;

TEST_F(CApiTest, TrackerNoTsan) {
  vellum_region* region = nullptr;
  options_.tracker = 3;
  EXPECT_EQ(vellum_region_create(store_, "cards", kCRegionBytes, &options_, &region),
            VELLUM_ERR_INVALID_ARGUMENT);
  options_.tracker = VELLUM_TRACKER_CARDS;
  options_.verify_cards = 1;
  ASSERT_EQ(vellum_region_create(store_, "cards", kCRegionBytes, &options_, &region), VELLUM_OK)
      << message();
  auto* word = static_cast<std::uint64_t*>(vellum_region_data(region)) + 1000;
  *word = 5;
  EXPECT_EQ(vellum_commit(region, nullptr, nullptr), VELLUM_ERR_CORRUPTED);
  EXPECT_NE(message().find("page 1 "), std::string::npos) << message();
  vellum_mark(word, sizeof *word);
  EXPECT_EQ(vellum_commit(region, nullptr, nullptr), VELLUM_OK) << message();
  vellum_region_close(region);
}

TEST_F(CApiTest, CommitSurvivesReopening) {
  EXPECT_EQ(vellum_region_size(region_), kCRegionBytes);
  EXPECT_GE(vellum_region_capacity(region_), kCRegionBytes);
  EXPECT_EQ(vellum_region_writable(region_), 1);
  words()[0] = 7;
  ASSERT_EQ(vellum_commit(region_, "seven", nullptr), VELLUM_OK) << message();
  words()[0] = 8;
  vellum_region_close(region_);
  region_ = nullptr;
  vellum_store_close(store_);
  store_ = nullptr;

  ASSERT_EQ(vellum_store_open(path_.c_str(), &store_), VELLUM_OK) << message();
  ASSERT_EQ(vellum_region_open(store_, "main", &options_, &region_), VELLUM_OK) << message();
  EXPECT_EQ(words()[0], 7U);
}

TEST_F(CApiTest, StoreAndRegionCloseInAnyOrder) {
  vellum_store_close(store_);
  store_ = nullptr;
  words()[1] = 1;
  EXPECT_EQ(vellum_commit(region_, nullptr, nullptr), VELLUM_OK) << message();
}

TEST_F(CApiTest, ReportIsFilled) {
  words()[0] = 1;
  words()[100'000] = 2;
  vellum_commit_report report = VELLUM_COMMIT_REPORT_INIT;
  ASSERT_EQ(vellum_commit(region_, nullptr, &report), VELLUM_OK) << message();
  EXPECT_EQ(report.struct_size, sizeof report);
  EXPECT_EQ(report.sequence, vellum_region_sequence(region_));
  EXPECT_GE(report.sequence, 1U);
  EXPECT_EQ(report.pages_changed, 2U);
  EXPECT_GE(report.pages_dirty, 2U);
  EXPECT_GT(report.bytes_written, 0U);
  EXPECT_GT(report.total_ns, 0U);
}

TEST_F(CApiTest, CommitsInTheBackground) {
  words()[0] = 1;
  vellum_pending* first = nullptr;
  vellum_pending* second = nullptr;
  ASSERT_EQ(vellum_commit_async(region_, "one", &first), VELLUM_OK) << message();
  words()[0] = 2;
  ASSERT_EQ(vellum_snapshot_async(region_, "two", nullptr, &second), VELLUM_OK) << message();
  words()[0] = 3;
  EXPECT_EQ(vellum_snapshot_async(region_, "two", nullptr, nullptr), VELLUM_ERR_ALREADY_EXISTS);
  EXPECT_EQ(vellum_commit_async(region_, nullptr, nullptr), VELLUM_OK) << "nobody will ask";
  vellum_commit_report report = VELLUM_COMMIT_REPORT_INIT;
  ASSERT_EQ(vellum_wait(first, &report), VELLUM_OK) << message();
  EXPECT_GT(report.pause_ns, 0U);
  const uint64_t sequence = report.sequence;
  vellum_region_close(region_);  // waits for all of them
  region_ = nullptr;
  EXPECT_EQ(vellum_pending_ended(second), 1);
  ASSERT_EQ(vellum_wait(second, &report), VELLUM_OK) << message();
  EXPECT_EQ(report.sequence, sequence + 1);
  EXPECT_EQ(vellum_wait(nullptr, nullptr), VELLUM_ERR_INVALID_ARGUMENT);
  ASSERT_EQ(vellum_region_open_version(store_, "two", nullptr, &region_), VELLUM_OK) << message();
  EXPECT_EQ(words()[0], 2U);
  vellum_region_close(region_);
  ASSERT_EQ(vellum_region_open(store_, "main", nullptr, &region_), VELLUM_OK) << message();
  EXPECT_EQ(words()[0], 3U);
}

TEST_F(CApiTest, ReportOfAnOlderOrNewerCallerIsServed) {
  words()[0] = 1;
  // An older caller, whose struct ends after pages_dirty.
  vellum_commit_report old_report;
  std::memset(&old_report, 0xee, sizeof old_report);
  old_report.struct_size = offsetof(vellum_commit_report, pages_changed);
  ASSERT_EQ(vellum_commit(region_, nullptr, &old_report), VELLUM_OK) << message();
  EXPECT_EQ(old_report.struct_size, offsetof(vellum_commit_report, pages_changed));
  EXPECT_EQ(old_report.sequence, vellum_region_sequence(region_));
  EXPECT_EQ(old_report.pages_changed, 0xeeeeeeeeeeeeeeeeU);

  // A newer caller, whose struct is longer than the library's.
  struct {
    vellum_commit_report known;
    std::uint64_t later;
  } longer = {VELLUM_COMMIT_REPORT_INIT, 99};
  longer.known.struct_size = sizeof longer;
  words()[0] = 2;
  ASSERT_EQ(vellum_commit(region_, nullptr, &longer.known), VELLUM_OK) << message();
  EXPECT_EQ(longer.known.pages_changed, 1U);
  EXPECT_EQ(longer.known.struct_size, sizeof longer);
  EXPECT_EQ(longer.later, 99U);

  // A caller that forgot struct_size: nothing is committed.
  words()[0] = 3;
  const std::uint64_t sequence = vellum_region_sequence(region_);
  vellum_commit_report forgotten = {};
  EXPECT_EQ(vellum_commit(region_, nullptr, &forgotten), VELLUM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(vellum_region_sequence(region_), sequence);
}

TEST_F(CApiTest, SnapshotsAreReadWhileTheRegionIsOpen) {
  words()[0] = 1;
  ASSERT_EQ(vellum_snapshot(region_, "one", "the first", nullptr), VELLUM_OK) << message();
  words()[0] = 2;
  ASSERT_EQ(vellum_commit(region_, nullptr, nullptr), VELLUM_OK) << message();
  EXPECT_EQ(vellum_snapshot(region_, "one", nullptr, nullptr), VELLUM_ERR_ALREADY_EXISTS);
  EXPECT_EQ(vellum_snapshot(region_, "-x", nullptr, nullptr), VELLUM_ERR_INVALID_ARGUMENT);

  vellum_region* one = nullptr;
  ASSERT_EQ(vellum_region_open_version(store_, "one", nullptr, &one), VELLUM_OK) << message();
  EXPECT_EQ(static_cast<std::uint64_t*>(vellum_region_data(one))[0], 1U);
  EXPECT_EQ(vellum_region_writable(one), 0);
  EXPECT_EQ(vellum_commit(one, nullptr, nullptr), VELLUM_ERR_READ_ONLY);
  EXPECT_EQ(words()[0], 2U);
  vellum_region_close(one);

  std::uint64_t read = 0;
  ASSERT_EQ(vellum_read(store_, "one", 0, &read, sizeof read), VELLUM_OK) << message();
  EXPECT_EQ(read, 1U);
  EXPECT_EQ(vellum_read(store_, "one", kCRegionBytes, &read, 1), VELLUM_ERR_INVALID_ARGUMENT);
}

TEST_F(CApiTest, RollbackAndGrow) {
  words()[0] = 1;
  ASSERT_EQ(vellum_commit(region_, nullptr, nullptr), VELLUM_OK) << message();
  words()[0] = 2;
  ASSERT_EQ(vellum_rollback(region_), VELLUM_OK) << message();
  EXPECT_EQ(words()[0], 1U);

  ASSERT_EQ(vellum_grow(region_, 4 * kCRegionBytes), VELLUM_OK) << message();
  EXPECT_EQ(vellum_region_size(region_), 4 * kCRegionBytes);
  words()[4 * kCRegionBytes / 8 - 1] = 9;
  EXPECT_EQ(vellum_commit(region_, nullptr, nullptr), VELLUM_OK) << message();
  EXPECT_EQ(vellum_grow(region_, kCRegionBytes), VELLUM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(vellum_grow(region_, vellum_region_capacity(region_) + 4096),
            VELLUM_ERR_INVALID_ARGUMENT);

  EXPECT_EQ(vellum_region_file_size(region_), 4 * kCRegionBytes);
  ASSERT_EQ(vellum_resize_file(region_, 12345, 0), VELLUM_OK) << message();
  ASSERT_EQ(vellum_commit(region_, nullptr, nullptr), VELLUM_OK) << message();
  EXPECT_EQ(vellum_region_file_size(region_), 12345U);
  EXPECT_EQ(vellum_region_size(region_), 4 * kCRegionBytes);
  const auto see_size = [](const vellum_version_info* version, void* size) {
    *static_cast<std::uint64_t*>(size) = version->file_bytes;
    return 0;
  };
  std::uint64_t seen = 0;
  ASSERT_EQ(vellum_versions(store_, see_size, &seen), VELLUM_OK) << message();
  EXPECT_EQ(seen, 12345U);
  EXPECT_EQ(vellum_resize_file(region_, vellum_region_capacity(region_) + 1, 0),
            VELLUM_ERR_INVALID_ARGUMENT);
}

TEST_F(CApiTest, PinnedMemoryServesSystemCalls) {
  words()[0] = 1;
  ASSERT_EQ(vellum_snapshot(region_, "s", nullptr, nullptr), VELLUM_OK) << message();
  vellum_region* version = nullptr;
  ASSERT_EQ(vellum_region_open_version(store_, "s", nullptr, &version), VELLUM_OK) << message();
  const void* data = vellum_region_data(version);
  EXPECT_EQ(vellum_prefetch(version, data, kCRegionBytes), VELLUM_OK) << message();
  const auto* const bytes = static_cast<const std::byte*>(data);
  const vellum_span spans[] = {{bytes + kCRegionBytes - 1, 1}, {bytes, 4}};
  EXPECT_EQ(vellum_prefetch_ranges(version, spans, 2), VELLUM_OK) << message();
  EXPECT_EQ(vellum_prefetch_ranges(version, nullptr, 0), VELLUM_OK) << message();
  vellum_pin* pin = nullptr;
  ASSERT_EQ(vellum_pin_range(version, data, kCRegionBytes, &pin), VELLUM_OK) << message();
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(write(null, data, kCRegionBytes), static_cast<ssize_t>(kCRegionBytes));
  close(null);
  vellum_unpin(pin);

  int other = 0;
  EXPECT_EQ(vellum_pin_range(version, &other, 4, &pin), VELLUM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(pin, nullptr);
  EXPECT_EQ(vellum_prefetch(version, &other, 4), VELLUM_ERR_INVALID_ARGUMENT);
  const vellum_span outside[] = {{data, 4}, {&other, 4}};
  EXPECT_EQ(vellum_prefetch_ranges(version, outside, 2), VELLUM_ERR_INVALID_ARGUMENT);
  for (const int advice : {VELLUM_ADVICE_NORMAL, VELLUM_ADVICE_SEQUENTIAL, VELLUM_ADVICE_RANDOM,
                           VELLUM_ADVICE_WILL_NEED, VELLUM_ADVICE_DONT_NEED}) {
    EXPECT_EQ(vellum_advise(version, data, kCRegionBytes, advice), VELLUM_OK) << message();
    EXPECT_EQ(vellum_advise(version, &other, 4, advice), VELLUM_ERR_INVALID_ARGUMENT);
  }
  EXPECT_EQ(vellum_advise(version, data, kCRegionBytes, 5), VELLUM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(vellum_zero(version, const_cast<void*>(data), 1), VELLUM_ERR_READ_ONLY);
  EXPECT_EQ(vellum_advise(version, data, kCRegionBytes, -1), VELLUM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(*static_cast<const std::uint64_t*>(data), 1U);
  vellum_region_close(version);
}

struct Seen {
  std::vector<std::string> names;
  std::string parent_of_two, message_of_two;
  std::size_t stop_after = 100;
};

int see(const vellum_version_info* version, void* context) {
  auto& seen = *static_cast<Seen*>(context);
  EXPECT_EQ(version->struct_size, sizeof *version);
  EXPECT_EQ(version->region_bytes, kCRegionBytes);
  EXPECT_GT(version->time_ns, 0);
  seen.names.push_back((version->is_branch ? "branch " : "snapshot ") + std::string(version->name));
  if (std::strcmp(version->name, "two") == 0) {
    EXPECT_STREQ(version->branch, "main");
    seen.parent_of_two = version->parent;
    seen.message_of_two = version->message;
  }
  return seen.names.size() == seen.stop_after ? 1 : 0;
}

TEST_F(CApiTest, VersionsAreListedBranchedAndRemoved) {
  words()[0] = 1;
  ASSERT_EQ(vellum_snapshot(region_, "one", nullptr, nullptr), VELLUM_OK) << message();
  words()[0] = 2;
  ASSERT_EQ(vellum_snapshot(region_, "two", "the second", nullptr), VELLUM_OK) << message();
  ASSERT_EQ(vellum_create_branch(store_, "side", "one", nullptr), VELLUM_OK) << message();
  ASSERT_EQ(vellum_create_snapshot(store_, "uno", "one", "again"), VELLUM_OK) << message();

  Seen seen;
  ASSERT_EQ(vellum_versions(store_, see, &seen), VELLUM_OK) << message();
  ASSERT_EQ(seen.names.size(), 5U);
  EXPECT_EQ(seen.names[3], "branch main");
  EXPECT_EQ(seen.names[4], "branch side");
  EXPECT_EQ(seen.parent_of_two, "one");
  EXPECT_EQ(seen.message_of_two, "the second");

  Seen first;
  first.stop_after = 1;
  ASSERT_EQ(vellum_versions(store_, see, &first), VELLUM_OK) << message();
  EXPECT_EQ(first.names.size(), 1U);

  EXPECT_EQ(vellum_convert_to_branch(store_, "none"), VELLUM_ERR_NOT_FOUND);
  EXPECT_EQ(vellum_convert_to_branch(store_, "one"), VELLUM_OK) << message();
  Seen writable;
  ASSERT_EQ(vellum_versions(store_, see, &writable), VELLUM_OK) << message();
  EXPECT_EQ(writable.names[3], "branch one");
  EXPECT_EQ(vellum_remove(store_, "main"), VELLUM_ERR_BUSY);
  EXPECT_EQ(vellum_rename_branch(store_, "main", "other"), VELLUM_ERR_BUSY);
  EXPECT_EQ(vellum_rename_branch(store_, "side", "other"), VELLUM_OK) << message();
  EXPECT_EQ(vellum_rename_branch(store_, "other", "side"), VELLUM_OK) << message();
  EXPECT_EQ(vellum_remove(store_, "none"), VELLUM_ERR_NOT_FOUND);
  EXPECT_EQ(vellum_remove(store_, "one"), VELLUM_OK) << message();
  EXPECT_EQ(vellum_remove(store_, "side"), VELLUM_OK) << message();
  EXPECT_EQ(vellum_create_branch(store_, "late", "one", nullptr), VELLUM_ERR_NOT_FOUND);
  Seen left;
  ASSERT_EQ(vellum_versions(store_, see, &left), VELLUM_OK) << message();
  EXPECT_EQ(left.names.size(), 3U);
}

TEST_F(CApiTest, ExportAndImport) {
  words()[5] = 55;
  ASSERT_EQ(vellum_snapshot(region_, "s", nullptr, nullptr), VELLUM_OK) << message();
  const std::string file = directory_.path() + "/copy";
  ASSERT_EQ(vellum_export(store_, "s", file.c_str(), nullptr, nullptr), VELLUM_OK) << message();
  EXPECT_EQ(std::filesystem::file_size(file), kCRegionBytes);
  EXPECT_EQ(vellum_export(store_, "s", file.c_str(), nullptr, nullptr), VELLUM_ERR_ALREADY_EXISTS);

  vellum_commit_report report = VELLUM_COMMIT_REPORT_INIT;
  ASSERT_EQ(vellum_import(store_, "copy", file.c_str(), "from a file", &report, nullptr, nullptr),
            VELLUM_OK)
      << message();
  EXPECT_EQ(report.pages_changed, 1U);
  std::uint64_t read = 0;
  ASSERT_EQ(vellum_read(store_, "copy", 40, &read, sizeof read), VELLUM_OK) << message();
  EXPECT_EQ(read, 55U);
  EXPECT_NE(vellum_import(store_, "copy", "/no/such/file", nullptr, nullptr, nullptr, nullptr),
            VELLUM_OK);
}

TEST_F(CApiTest, StatAndVerify) {
  std::mt19937_64 random(1);  // does not compress
  for (std::size_t i = 0; i < kCRegionBytes / 8; ++i) words()[i] = random();
  ASSERT_EQ(vellum_snapshot(region_, "s", nullptr, nullptr), VELLUM_OK) << message();
  vellum_store_stat stat = VELLUM_STORE_STAT_INIT;
  ASSERT_EQ(vellum_stat(store_, &stat, nullptr, nullptr), VELLUM_OK) << message();
  EXPECT_EQ(stat.snapshots, 1U);
  EXPECT_EQ(stat.branches, 1U);
  EXPECT_GT(stat.stored_bytes, kCRegionBytes);
  EXPECT_GE(stat.full_copy_bytes, kCRegionBytes);

  vellum_verify_report summary = VELLUM_VERIFY_REPORT_INIT;
  vellum_verify_options all = VELLUM_VERIFY_OPTIONS_INIT;
  all.read_data = 1;
  ASSERT_EQ(vellum_verify(store_, &all, &summary, nullptr, nullptr, nullptr), VELLUM_OK)
      << message();
  EXPECT_EQ(summary.damages, 0U);
  EXPECT_GE(summary.versions, 2U);
  EXPECT_GT(summary.bytes_read, kCRegionBytes);

  vellum_region_close(region_);
  region_ = nullptr;
  for (const auto& entry : std::filesystem::directory_iterator(path_ + "/packs")) {
    std::fstream pack(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    pack.seekp(static_cast<std::streamoff>(entry.file_size() / 2));
    pack.write("damage", 6);
  }
  EXPECT_EQ(vellum_verify(store_, &all, &summary, nullptr, nullptr, nullptr), VELLUM_ERR_CORRUPTED);
  EXPECT_GE(summary.damages, 1U);
  EXPECT_NE(message().find("pack"), std::string::npos) << message();
  EXPECT_EQ(vellum_verify(store_, &all, nullptr, nullptr, nullptr, nullptr), VELLUM_ERR_CORRUPTED);
}

TEST_F(CApiTest, OptionsReachTheLibrary) {
  vellum_store_options options = VELLUM_STORE_OPTIONS_INIT;
  vellum_encoding encoding = VELLUM_ENCODING_INIT;
  options.encoding = &encoding;
  const std::string other = directory_.path() + "/other";
  vellum_store* store = nullptr;
  encoding.block_bytes = 5000;
  EXPECT_EQ(vellum_store_create(other.c_str(), &options, &store), VELLUM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(store, nullptr);
  encoding.block_bytes = 4096;
  encoding.compression = 17;
  EXPECT_EQ(vellum_store_create(other.c_str(), &options, &store), VELLUM_ERR_INVALID_ARGUMENT);
  encoding.compression = VELLUM_COMPRESSION_LZ4;
  encoding.hash = 17;
  EXPECT_EQ(vellum_store_create(other.c_str(), &options, &store), VELLUM_ERR_INVALID_ARGUMENT);
  encoding.hash = VELLUM_HASH_SHA256;
  ASSERT_EQ(vellum_store_open_or_create(other.c_str(), &options, &store), VELLUM_OK) << message();

  vellum_region_options how = VELLUM_REGION_OPTIONS_INIT;
  vellum_region* region = nullptr;
  how.engine = 17;
  EXPECT_EQ(vellum_region_create(store, "r", 4096, &how, &region), VELLUM_ERR_INVALID_ARGUMENT);
  how.engine = VELLUM_ENGINE_SIGSEGV;
  how.encode_threads = -2;
  EXPECT_EQ(vellum_region_create(store, "r", 4096, &how, &region), VELLUM_ERR_INVALID_ARGUMENT);
  how.encode_threads = -1;
  how.capacity_bytes = 64 << 20;
  ASSERT_EQ(vellum_region_open_or_create(store, "r", 4096, &how, &region), VELLUM_OK) << message();
  EXPECT_EQ(vellum_region_capacity(region), 64U << 20);
  static_cast<char*>(vellum_region_data(region))[0] = 1;
  EXPECT_EQ(vellum_commit(region, nullptr, nullptr), VELLUM_OK) << message();
  vellum_region_close(region);

  const std::string image = directory_.path() + "/image";
  how.image_path = image.c_str();  // not for engine sigsegv
  EXPECT_EQ(vellum_region_open(store, "r", &how, &region), VELLUM_ERR_INVALID_ARGUMENT);
  how.engine = VELLUM_ENGINE_MAPPED;
  ASSERT_EQ(vellum_region_open(store, "r", &how, &region), VELLUM_OK) << message();
  EXPECT_EQ(static_cast<char*>(vellum_region_data(region))[0], 1);
  EXPECT_EQ(std::filesystem::file_size(image), 4096U);
  vellum_region_close(region);
  vellum_store_close(store);
  EXPECT_EQ(vellum::Store::open(other).options().encoding.hash, vellum::Encoding::Hash::sha256);
}

TEST_F(CApiTest, AWorkingSetIsRecordedOnRequest) {
  const std::string hint = path_ + "/hints/s.set";
  words()[0] = 1;
  ASSERT_EQ(vellum_snapshot(region_, "s", nullptr, nullptr), VELLUM_OK) << message();
  const auto open_and_close = [&] {
    vellum_region* version = nullptr;
    ASSERT_EQ(vellum_region_open_version(store_, "s", &options_, &version), VELLUM_OK) << message();
    EXPECT_EQ(*static_cast<std::uint64_t*>(vellum_region_data(version)), 1U);
    vellum_region_close(version);
  };
  options_.engine = VELLUM_ENGINE_SIGSEGV;  // not mapped, whatever the environment has
  open_and_close();
  EXPECT_FALSE(std::filesystem::exists(hint));
  options_.working_set = 1;
  // A caller from before it existed.
  options_.struct_size = offsetof(vellum_region_options, working_set);
  open_and_close();
  EXPECT_FALSE(std::filesystem::exists(hint));
  options_.struct_size = sizeof options_;
  open_and_close();
  EXPECT_TRUE(std::filesystem::exists(hint));
}

TEST_F(CApiTest, ABranchHasAnEncodingOfItsOwn) {
  ASSERT_EQ(vellum_snapshot(region_, "s", nullptr, nullptr), VELLUM_OK) << message();
  vellum_encoding own = VELLUM_ENCODING_INIT;
  own.compression = VELLUM_COMPRESSION_LZ4;
  own.no_dedup = 1;
  own.hash = VELLUM_HASH_SHA256;
  ASSERT_EQ(vellum_create_branch(store_, "own", "s", &own), VELLUM_OK) << message();
  ASSERT_EQ(vellum_create_branch(store_, "child", "own", nullptr), VELLUM_OK) << message();
  own.block_bytes = 5000;
  EXPECT_EQ(vellum_create_branch(store_, "x", "s", &own), VELLUM_ERR_INVALID_ARGUMENT);
  int own_ones = 0;
  const auto look = [](const vellum_version_info* info, void* context) {
    if (info->encoding == nullptr) return 0;
    ++*static_cast<int*>(context);
    EXPECT_EQ(info->encoding->struct_size, sizeof(vellum_encoding));
    EXPECT_EQ(info->encoding->compression, VELLUM_COMPRESSION_LZ4);
    EXPECT_EQ(info->encoding->no_dedup, 1);
    EXPECT_EQ(info->encoding->no_deltas, 0);
    EXPECT_EQ(info->encoding->hash, VELLUM_HASH_SHA256);
    return 0;
  };
  ASSERT_EQ(vellum_versions(store_, look, &own_ones), VELLUM_OK);
  EXPECT_EQ(own_ones, 2);
}

TEST_F(CApiTest, FailuresHaveNumberMessageAndNullOutput) {
  auto* store = reinterpret_cast<vellum_store*>(this);
  EXPECT_EQ(vellum_store_open((directory_.path() + "/none").c_str(), &store), VELLUM_ERR_NOT_FOUND);
  EXPECT_EQ(store, nullptr);
  EXPECT_NE(message().find("none"), std::string::npos) << message();
  EXPECT_EQ(vellum_store_open(directory_.path().c_str(), &store), VELLUM_ERR_NOT_A_STORE);

  auto* region = reinterpret_cast<vellum_region*>(this);
  EXPECT_EQ(vellum_region_open(store_, "none", nullptr, &region), VELLUM_ERR_NOT_FOUND);
  EXPECT_EQ(region, nullptr);
  EXPECT_EQ(vellum_region_open(store_, "main", nullptr, &region), VELLUM_ERR_BUSY);
  EXPECT_EQ(vellum_region_create(store_, "main", 4096, nullptr, &region),
            VELLUM_ERR_ALREADY_EXISTS);
  EXPECT_EQ(vellum_region_open_version(store_, "none", nullptr, &region), VELLUM_ERR_NOT_FOUND);
}

TEST_F(CApiTest, NullIsAnErrorEverywhere) {
  const auto expect_invalid = [](int result) {
    EXPECT_EQ(result, VELLUM_ERR_INVALID_ARGUMENT);
    EXPECT_NE(message().find("NULL"), std::string::npos) << message();
  };
  vellum_store* store = nullptr;
  vellum_region* region = nullptr;
  vellum_pin* pin = nullptr;
  vellum_transaction* transaction = nullptr;
  vellum_memory_use use = VELLUM_MEMORY_USE_INIT;
  char byte = 0;
  expect_invalid(vellum_store_create(nullptr, nullptr, &store));
  expect_invalid(vellum_store_create("x", nullptr, nullptr));
  expect_invalid(vellum_store_open(nullptr, &store));
  expect_invalid(vellum_store_open_or_create(nullptr, nullptr, &store));
  expect_invalid(vellum_region_create(nullptr, "x", 4096, nullptr, &region));
  expect_invalid(vellum_region_create(store_, nullptr, 4096, nullptr, &region));
  expect_invalid(vellum_region_create(store_, "x", 4096, nullptr, nullptr));
  expect_invalid(vellum_region_open(nullptr, "x", nullptr, &region));
  expect_invalid(vellum_region_open_or_create(nullptr, "x", 4096, nullptr, &region));
  expect_invalid(vellum_region_open_version(nullptr, "x", nullptr, &region));
  expect_invalid(vellum_commit(nullptr, nullptr, nullptr));
  expect_invalid(vellum_commit_ranges(nullptr, nullptr, 0, nullptr, nullptr));
  expect_invalid(vellum_commit_ranges(region_, nullptr, 1, nullptr, nullptr));
  expect_invalid(vellum_drop_copies(nullptr, nullptr, 0));
  expect_invalid(vellum_drop_copies(region_, nullptr, 1));
  expect_invalid(vellum_begin(nullptr, &transaction));
  expect_invalid(vellum_begin(region_, nullptr));
  expect_invalid(vellum_transaction_commit(nullptr, nullptr, nullptr));
  expect_invalid(vellum_transaction_rollback(nullptr));
  expect_invalid(vellum_region_close_and_leave_memory(nullptr));
  expect_invalid(vellum_region_memory_use(nullptr, &use));
  expect_invalid(vellum_region_memory_use(region_, nullptr));
  expect_invalid(vellum_snapshot(nullptr, "x", nullptr, nullptr));
  expect_invalid(vellum_snapshot(region_, nullptr, nullptr, nullptr));
  expect_invalid(vellum_rollback(nullptr));
  expect_invalid(vellum_grow(nullptr, 4096));
  expect_invalid(vellum_resize_file(nullptr, 4096, 0));
  expect_invalid(vellum_pin_range(nullptr, &byte, 1, &pin));
  expect_invalid(vellum_pin_range(region_, nullptr, 1, &pin));
  expect_invalid(vellum_pin_range(region_, words(), 1, nullptr));
  expect_invalid(vellum_prefetch(nullptr, &byte, 1));
  expect_invalid(vellum_prefetch(region_, nullptr, 1));
  expect_invalid(vellum_prefetch_ranges(nullptr, nullptr, 0));
  expect_invalid(vellum_prefetch_ranges(region_, nullptr, 1));
  expect_invalid(vellum_zero(nullptr, &byte, 1));
  expect_invalid(vellum_zero(region_, nullptr, 1));
  expect_invalid(vellum_convert_to_branch(nullptr, "x"));
  expect_invalid(vellum_convert_to_branch(store_, nullptr));
  expect_invalid(vellum_rename_branch(store_, nullptr, "x"));
  expect_invalid(vellum_rename_branch(store_, "x", nullptr));
  expect_invalid(vellum_advise(nullptr, &byte, 1, VELLUM_ADVICE_NORMAL));
  expect_invalid(vellum_advise(region_, nullptr, 1, VELLUM_ADVICE_NORMAL));
  expect_invalid(vellum_versions(nullptr, see, nullptr));
  expect_invalid(vellum_versions(store_, nullptr, nullptr));
  expect_invalid(vellum_create_branch(nullptr, "a", "b", nullptr));
  expect_invalid(vellum_create_branch(store_, nullptr, "b", nullptr));
  expect_invalid(vellum_create_branch(store_, "a", nullptr, nullptr));
  expect_invalid(vellum_create_snapshot(store_, nullptr, "b", nullptr));
  expect_invalid(vellum_create_snapshot(store_, "a", nullptr, nullptr));
  expect_invalid(vellum_remove(nullptr, "a"));
  expect_invalid(vellum_remove(store_, nullptr));
  expect_invalid(vellum_read(store_, "main", 0, nullptr, 1));
  expect_invalid(vellum_read(store_, nullptr, 0, &byte, 1));
  expect_invalid(vellum_export(store_, nullptr, "f", nullptr, nullptr));
  expect_invalid(vellum_export(store_, "main", nullptr, nullptr, nullptr));
  expect_invalid(vellum_import(store_, nullptr, "f", nullptr, nullptr, nullptr, nullptr));
  expect_invalid(vellum_import(store_, "b", nullptr, nullptr, nullptr, nullptr, nullptr));
  expect_invalid(vellum_stat(nullptr, nullptr, nullptr, nullptr));
  expect_invalid(vellum_stat(store_, nullptr, nullptr, nullptr));
  expect_invalid(vellum_verify(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));

  EXPECT_EQ(vellum_region_data(nullptr), nullptr);
  EXPECT_EQ(vellum_region_size(nullptr), 0U);
  EXPECT_EQ(vellum_region_capacity(nullptr), 0U);
  EXPECT_EQ(vellum_region_file_size(nullptr), 0U);
  EXPECT_EQ(vellum_region_writable(nullptr), 0);
  EXPECT_EQ(vellum_region_sequence(nullptr), 0U);
  EXPECT_EQ(vellum_region_engine(nullptr), VELLUM_ENGINE_AUTOMATIC);
  EXPECT_EQ(vellum_region_name(nullptr), nullptr);
  EXPECT_EQ(vellum_transaction_is_open(nullptr), 0);
  vellum_transaction_close(nullptr);
  vellum_region_close(nullptr);
  vellum_store_close(nullptr);
  vellum_unpin(nullptr);
}

TEST_F(CApiTest, MessagesBelongToTheirThread) {
  EXPECT_EQ(vellum_remove(store_, "mine"), VELLUM_ERR_NOT_FOUND);
  const std::string before = message();
  std::thread([this] {
    EXPECT_EQ(message(), "");
    EXPECT_EQ(vellum_remove(store_, "theirs"), VELLUM_ERR_NOT_FOUND);
    EXPECT_NE(message().find("theirs"), std::string::npos);
  }).join();
  EXPECT_EQ(message(), before);
  // A success does not change the message.
  EXPECT_EQ(vellum_rollback(region_), VELLUM_OK);
  EXPECT_EQ(message(), before);
}

TEST_F(CApiTest, ExceptionFromACallbackDoesNotCross) {
  const auto throwing = [](const vellum_version_info*, void*) -> int { throw 42; };
  EXPECT_NE(vellum_versions(store_, throwing, nullptr), VELLUM_OK);
  EXPECT_NE(message(), "");
}

TEST_F(CApiTest, APlainStoreIsNotTakenForAnEncryptedOne) {
  vellum_store_options encrypted = VELLUM_STORE_OPTIONS_INIT;
  encrypted.encrypt = 1;
  vellum_store* other = nullptr;
  EXPECT_EQ(vellum_store_open_or_create(path_.c_str(), &encrypted, &other), VELLUM_ERR_WRONG_KEY);
  EXPECT_EQ(other, nullptr);
  vellum_key_source source = VELLUM_KEY_SOURCE_INIT;
  source.encrypted_only = 1;
  ASSERT_EQ(vellum_set_key_source(&source), VELLUM_OK);
  EXPECT_EQ(vellum_store_open(path_.c_str(), &other), VELLUM_ERR_WRONG_KEY);
  ASSERT_EQ(vellum_set_key_source(nullptr), VELLUM_OK);
  ASSERT_EQ(vellum_store_open(path_.c_str(), &other), VELLUM_OK);
  vellum_store_close(other);
}

TEST(CApiErrors, NamesAreThoseOfTheLibrary) {
  for (int code = VELLUM_OK; code <= VELLUM_ERR_OUT_OF_MEMORY; ++code) {
    EXPECT_STREQ(vellum_errc_name(code), vellum::errc_name(static_cast<vellum::Errc>(code)));
  }
  EXPECT_STREQ(vellum_errc_name(VELLUM_ERR_NOT_FOUND), "not_found");
  EXPECT_STREQ(vellum_errc_name(VELLUM_ERR_WRONG_KEY), "wrong_key");
  EXPECT_STREQ(vellum_errc_name(VELLUM_ERR_UNTRUSTED), "untrusted");
  EXPECT_STREQ(vellum_errc_name(-1), "unknown");
  EXPECT_STREQ(vellum_errc_name(1000), "unknown");
}

}  // namespace
