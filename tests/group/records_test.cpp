// The directory of records: one job at a time, invalid records, and reads without a job.
#include "group/record_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vellum/group.hpp>

#include "base/temp_directory.hpp"
#include "group/pins.hpp"
#include "group/versions/group_version.hpp"
#include "store/support.hpp"
#include "support/one_process_group.hpp"

namespace vellum::group {
namespace {

namespace fs = std::filesystem;
using vellum::test::TempDirectory;

#define EXPECT_ERROR(code, statement, part)                                               \
  EXPECT_THAT(store::test::error_text(Errc::code, [&] { static_cast<void>(statement); }), \
              testing::HasSubstr(part))

using vellum::test::OneProcess;
constexpr std::uint64_t kBytes = vellum::test::OneProcess::kPartitionBytes;

class GroupRecords : public testing::Test {
 protected:
  std::string records() const { return directory_ / "records"; }
  std::string store(std::uint32_t p) const { return directory_ / ("store-" + std::to_string(p)); }
  std::string record_file(std::uint64_t number) const {
    return records() + fmt::format("/{:016x}.version", number);
  }
  std::uint64_t word_of(const std::string& version, std::uint32_t p) const {
    const Region region = GroupVersion::open(records(), version).open_partition(p);
    return region.root<const std::uint64_t>();
  }
  const TempDirectory directory_;
};

// The record of a group's version is plain.
TEST_F(GroupRecords, EncryptedStoresAreRefused) {
  std::ofstream(directory_ / "key") << std::string(50, 'k');
  StoreOptions encrypted;
  encrypted.encrypt = true;
  encrypted.key.key_file = directory_ / "key";
  Store::create(store(1), encrypted);
  set_key_source(encrypted.key);
  EXPECT_ERROR(unsupported, OneProcess(directory_.path()), "the store is encrypted");
  set_key_source(KeySource());
}

TEST_F(GroupRecords, TwoJobsWithoutALockGetOneRecordOfEachNumber) {
  {
    OneProcess group(directory_.path());
  }
  auto first = RecordDirectory::open(base::posix_fs(), records());
  auto second = RecordDirectory::open(base::posix_fs(), records());
  format::GroupRecord record = *first.newest();
  ++record.number;
  first.publish(record);
  EXPECT_ERROR(busy, second.publish(record), "another job has taken over");
  // The number is free again, since the other job has published later records.
  ++record.number;
  first.publish(record);
  first.remove(record.number - 1);
  --record.number;
  EXPECT_ERROR(busy, second.publish(record), "another job has taken over");
  EXPECT_FALSE(second.contains(record.number));
}

TEST_F(GroupRecords, AJobThatAnotherHasTakenOverEnds) {
  OneProcess group(directory_.path());
  group.set(1);
  group.job().snapshot("one", "");
  auto other = RecordDirectory::open(base::posix_fs(), records());
  format::GroupRecord record = *other.newest();
  ++record.number;
  ++record.epoch;
  other.publish(record);
  group.set(2);
  EXPECT_ERROR(busy, group.job().snapshot("two", ""), "another job has taken over");
  EXPECT_ERROR(busy, group.job().snapshot("three", ""), "another job has taken over");
  EXPECT_EQ(other.newest()->number, record.number);
  EXPECT_EQ(word_of("", 1), 1u);
}

TEST_F(GroupRecords, ASecondJobIsRefused) {
  OneProcess first(directory_.path());
  EXPECT_ERROR(busy, OneProcess{directory_.path()}, "another job has the group open");
  EXPECT_ERROR(busy, collect_group_garbage(records()), "another job has the group open");
}

// A branch has one group.
TEST_F(GroupRecords, StoresOfAnotherGroupAreLeftAlone) {
  {
    OneProcess group(directory_.path());
  }
  EXPECT_ERROR(already_exists, OneProcess(directory_.path(), "", "others"),
               "belongs to another group");
}

TEST_F(GroupRecords, ADamagedNewestRecordIsNoOlderVersion) {
  {
    OneProcess group(directory_.path());
    group.set(7);
    group.job().snapshot("seven", "");
    group.set(8);
    group.job().snapshot("", "");
  }
  const std::uint64_t newest = group_versions(records()).back().number;
  fs::resize_file(record_file(newest), fs::file_size(record_file(newest)) - 1);
  EXPECT_ERROR(corrupted, OneProcess{directory_.path()}, fmt::format("{:016x}.version", newest));
  EXPECT_ERROR(corrupted, group_versions(records()), "truncated");
  EXPECT_ERROR(corrupted, collect_group_garbage(records()), "truncated");
  EXPECT_EQ(word_of("seven", 2), 7u) << "the others can be read";
  // Removing the record is the operator's decision.
  fs::remove(record_file(newest));
  OneProcess group(directory_.path());
  EXPECT_EQ(group.word(0), 7u);
}

// If all records are lost, no data is discarded, and no version is invented.
TEST_F(GroupRecords, LostRecordsAreAnError) {
  {
    OneProcess group(directory_.path());
    group.set(7);
    group.job().snapshot("seven", "");
  }
  const std::string pin = GroupVersion::open(records()).partition(0).snapshot;
  for (const auto& info : group_versions(records())) fs::remove(record_file(info.number));
  EXPECT_ERROR(corrupted, OneProcess{directory_.path()}, "its records are lost");
  EXPECT_TRUE(Store::open(store(0)).contains(pin));
}

TEST_F(GroupRecords, FilesWithOtherNamesAreNoRecords) {
  {
    OneProcess group(directory_.path());
  }
  const std::size_t before = group_versions(records()).size();
  for (const char* name : {"00000000000000FF.version", "1.version", "00000000000000ff.versions",
                           "0000000000000000.version", "x"}) {
    std::ofstream(records() + "/" + name) << "?";
  }
  EXPECT_EQ(group_versions(records()).size(), before);
  fs::copy_file(record_file(1), record_file(77));
  EXPECT_ERROR(corrupted, GroupVersion::open(records()), "the record is that of version 1");
}

// Each rank reports its missing version, and the others have discarded nothing.
TEST_F(GroupRecords, AnErrorNamesThePartitionThatLacksItsVersion) {
  {
    OneProcess group(directory_.path());
    group.set(5);
    group.job().snapshot("five", "");
  }
  EXPECT_TRUE(verify_group(records(), true).problems.empty());
  const std::string pin = GroupVersion::open(records(), "five").partition(1).snapshot;
  Store::open(store(1)).remove_snapshot(pin);
  fs::rename(store(2), store(2) + "-moved");
  EXPECT_ERROR(not_found, OneProcess{directory_.path()}, "partition 1");
  EXPECT_ERROR(not_found, GroupVersion::open(records()).open_partition(2), "partition 2");
  EXPECT_EQ(word_of("five", 0), 5u);
  const auto report = verify_group(records());
  EXPECT_EQ(report.complete, 0u);
  EXPECT_EQ(report.stores, 2u);
  ASSERT_EQ(report.problems.size(), 2 * report.versions);
  EXPECT_EQ(report.problems[0].partition, 1u);
  EXPECT_NE(report.problems[0].reason.find(pin), std::string::npos) << report.problems[0].reason;
  // Another store in its place, with the same names in it.
  fs::rename(store(2) + "-moved", store(2));
  fs::remove_all(store(1));
  fs::copy(store(2), store(1), fs::copy_options::recursive);
  EXPECT_ERROR(not_found, OneProcess{directory_.path()}, "another one");
}

TEST_F(GroupRecords, ASnapshotThatIsAnotherOneIsNotTaken) {
  {
    OneProcess group(directory_.path());
    group.set(5);
    group.job().snapshot("five", "");
  }
  Store store = Store::open(this->store(1));
  const std::string pin = GroupVersion::open(records(), "five").partition(1).snapshot;
  store.remove_snapshot(pin);
  store.create_snapshot(pin, "main");
  EXPECT_ERROR(corrupted, OneProcess{directory_.path()}, "not the version that the record names");
  EXPECT_ERROR(corrupted, GroupVersion::open(records(), "five").open_partition(1), pin);
}

// Otherwise each version would cause the next gc to scan the whole store.
TEST_F(GroupRecords, AVersionLeavesTheSpaceNote) {
  {
    OneProcess group(directory_.path());
    group.set(9);
    group.job().snapshot("", "");
  }
  Store::open(store(0)).collect_garbage();
  ASSERT_TRUE(fs::exists(store(0) + "/gc.space"));
  OneProcess group(directory_.path());
  for (std::uint64_t i = 1; i <= 3; ++i) {
    group.set(i);
    group.job().snapshot("", "");
  }
  group.job().close();
  EXPECT_TRUE(fs::exists(store(0) + "/gc.space"));
}

TEST_F(GroupRecords, GcRemovesWhatNoVersionNeeds) {
  {
    OneProcess group(directory_.path());
    group.set(1);
    group.job().snapshot("one", "");
    group.set(2);
    group.job().snapshot("", "");
  }
  // A leftover of a killed job: a pin without a record.
  const auto newest = GroupVersion::open(records());
  const auto& group_id = GroupAccess::impl_of(newest).group.id;
  Store::open(store(0)).create_snapshot(pin_name(group_id, 0, {9, 9}), "main");
  const auto dry = collect_group_garbage(records(), true);
  EXPECT_EQ(dry.snapshots_removed, 1u);
  EXPECT_EQ(dry.freed_bytes, 0u);
  const auto report = collect_group_garbage(records());
  EXPECT_EQ(report.snapshots_removed, 1u);
  EXPECT_EQ(report.stores, 3u);
  EXPECT_EQ(collect_group_garbage(records()).snapshots_removed, 0u);
  EXPECT_EQ(word_of("one", 0), 1u);
  EXPECT_EQ(word_of("", 0), 2u);

  remove_group_version(records(), "one");
  EXPECT_ERROR(not_found, remove_group_version(records(), "one"), "one");
  EXPECT_EQ(collect_group_garbage(records()).snapshots_removed, 3u);
  EXPECT_ERROR(not_found, GroupVersion::open(records(), "one"), "one");
  EXPECT_EQ(word_of("", 2), 2u);
  fs::remove_all(store(1));
  EXPECT_EQ(collect_group_garbage(records()).unreachable.size(), 1u);
}

// The newest version loses its name, but still exists.
TEST_F(GroupRecords, RemovingTheNameOfTheNewestVersionKeepsIt) {
  {
    OneProcess group(directory_.path());
    group.set(3);
    group.job().snapshot("three", "");
  }
  remove_group_version(records(), "three");
  EXPECT_EQ(collect_group_garbage(records()).snapshots_removed, 0u);
  OneProcess group(directory_.path());
  EXPECT_EQ(group.word(2), 3u);
}

TEST_F(GroupRecords, VersionsAreFoundByNameAndNumber) {
  {
    OneProcess group(directory_.path());
    group.set(3);
    group.job().snapshot("three", "of three");
    group.set(4);
    group.job().snapshot("3", "a name of digits");
  }
  EXPECT_EQ(word_of("three", 0), 3u);
  EXPECT_EQ(word_of("3", 0), 4u) << "names first";
  EXPECT_EQ(word_of("2", 0), 3u);
  EXPECT_ERROR(not_found, GroupVersion::open(records(), "99"), "99");
  EXPECT_ERROR(not_found, GroupVersion::open(records(), "99999999999999999999"), "9999");
  EXPECT_ERROR(not_found, GroupVersion::open(directory_ / "nowhere"), "no group");
  const GroupVersion three = GroupVersion::open(records(), "three");
  EXPECT_EQ(three.info().message, "of three");
  EXPECT_EQ(three.info().region_bytes, 3 * kBytes);
  EXPECT_EQ(three.partition(2).branch, "main");
  EXPECT_ERROR(invalid_argument, three.partition(3), "no partition 3");
  three.export_partition(1, directory_ / "exported");
  EXPECT_EQ(fs::file_size(directory_ / "exported"), kBytes);
  // Moved stores.
  fs::rename(store(0), directory_ / "moved-0");
  const Region moved =
      GroupVersion::open(records(), "three", directory_ / "moved-{}").open_partition(0);
  EXPECT_EQ(moved.root<const std::uint64_t>(), 3u);
}

}  // namespace
}  // namespace vellum::group
