// A group's versions in object stores, with a job of one process: complete versions, removed ones,
// and the checks of a restore.
#include "group/remote/restore.hpp"

#include <filesystem>
#include <fstream>

#include "group/remote/remote_group_fixture.hpp"

namespace vellum::group::test {
namespace {

namespace fs = std::filesystem;

class GroupRestore : public RemoteGroupTest {};

TEST_F(GroupRestore, ALostStoreIsRestoredAtTheNewestCompleteVersion) {
  {
    OneProcess group = open();
    push(group, 7, "seven");
    push(group, 8);
    group.set(9);
    group.job().snapshot("nine", "");  // only in the stores
  }
  fs::remove_all(store(1));
  EXPECT_ERROR(not_found, open(), "partition 1");
  const RestoreReport report = restore();
  EXPECT_EQ(report.partitions_fetched, 3u) << "the others have only 7 and 9";
  expect_all("", 8);
  {
    OneProcess group = open();
    for (std::uint32_t p = 0; p < 3; ++p) EXPECT_EQ(group.word(p), 8u);
    push(group, 10);
  }
  expect_all("", 10);
  // A version that was never pushed is lost with its store, and reported.
  const auto problems = verify_group(records(), true).problems;
  for (const GroupProblem& problem : problems) EXPECT_EQ(problem.partition, 1u);
  EXPECT_EQ(problems.size(), 2u) << "seven can be fetched, nine cannot";
  EXPECT_EQ(restore("seven").partitions_fetched, 1u);
  expect_all("seven", 7);
  expect_all("", 7);
}

TEST_F(GroupRestore, AllStoresAndRecordsAreRestored) {
  {
    OneProcess group = open();
    push(group, 7, "seven");
    push(group, 8);
  }
  lose_all();
  EXPECT_EQ(restore().partitions_fetched, 3u);
  expect_all("", 8);
  lose_all();
  EXPECT_EQ(restore("seven").name, "seven");
  expect_all("seven", 7);
  EXPECT_EQ(restore("seven").partitions_fetched, 0u) << "it can be done again";
  EXPECT_TRUE(verify_group(records(), true).problems.empty());
  OneProcess group = open();
  push(group, 11);
  expect_all("", 11);
}

TEST_F(GroupRestore, OnlyVersionsThatARecordNeedsStayAtTheRemote) {
  OneProcess group = open();
  push(group, 1);
  push(group, 2, "two");
  push(group, 3);
  push(group, 4);
  const auto there = records_there();
  ASSERT_EQ(there.size(), 2u);
  EXPECT_EQ(there[1].name, "two");
  push(group);  // once more: the thread that removes pins ends before it begins
  EXPECT_EQ(records_there().size(), 2u);
  const std::set<format::GroupPin> needed = {there[0].pin, there[1].pin};
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_EQ(pins_there(p), needed);
}

TEST_F(GroupRestore, AVersionThatOnePartitionHasNotPushedIsNotThere) {
  OneProcess group = open();
  push(group, 1);
  fs::rename(remote() + "/partition-2", remote() + "/moved");
  std::ofstream(remote() + "/partition-2") << "no directory";
  group.set(2);
  group.job().snapshot("two", "");
  const auto pending = group.job().push_async("");
  group.set(3);
  group.job().snapshot("", "");
  EXPECT_THROW(group.job().finish_push(pending), Error);
  EXPECT_EQ(records_there().size(), 1u);
  EXPECT_EQ(pins_there(0).size(), 2u) << "its pushed pins belong to no version";
  fs::remove(remote() + "/partition-2");
  fs::rename(remote() + "/moved", remote() + "/partition-2");
  push(group);
  EXPECT_EQ(records_there().size(), 1u);
  push(group);
  EXPECT_EQ(pins_there(0).size(), 1u) << "and is forgotten";
}

// The pin is removed when no version needs it, and not before.
TEST_F(GroupRestore, AVersionThatIsBeingPushedKeepsItsPins) {
  OneProcess group = open();
  group.set(5);
  group.job().snapshot("", "");
  const auto number = group.job().number();
  const auto pending = group.job().push_async("");
  for (std::uint64_t value = 6; value < 12; ++value) {
    group.set(value);
    group.job().snapshot("", "");
  }
  group.job().finish_push(pending);
  EXPECT_EQ(pending->number, number);
  group.set(12);
  group.job().snapshot("", "");
  group.job().close();
  const auto id = RecordDirectory::open(base::posix_fs(), records()).group().id;
  for (std::uint32_t p = 0; p < 3; ++p) {
    const auto core = store::StoreDirectory::open(base::posix_fs(), store(p));
    EXPECT_EQ(pins_in(*core, id, p).size(), 1u);
  }
  lose_all();
  restore();
  expect_all("", 5);
}

// Stores that are not lost have pins of jobs without records at the remote.
TEST_F(GroupRestore, ARestoreWithoutRecordsTakesNoEpochThatAPinHas) {
  {
    OneProcess group = open();
    push(group, 7);
  }
  for (std::uint64_t value = 8; value < 10; ++value) {
    OneProcess group = open();
    group.set(value);
    group.job().snapshot("", "");
  }
  fs::remove_all(records());
  restore();
  expect_all("", 7);
  OneProcess group = open();
  push(group, 10);
  expect_all("", 10);
}

// So does a remote, of jobs whose stores are lost, too.
TEST_F(GroupRestore, ARestoreTakesNoEpochThatOnlyAPinAtTheRemoteHas) {
  {
    OneProcess group = open();
    push(group, 7);
  }
  fs::rename(remote() + "/partition-2", remote() + "/moved");
  std::ofstream(remote() + "/partition-2") << "no directory";
  for (std::uint64_t value = 8; value < 10; ++value) {
    OneProcess group = open();
    group.set(value);
    group.job().snapshot("", "");
    EXPECT_THROW(push(group), Error);
  }
  fs::remove(remote() + "/partition-2");
  fs::rename(remote() + "/moved", remote() + "/partition-2");
  lose_all();
  restore();
  expect_all("", 7);
  OneProcess group = open();
  push(group, 10);
  expect_all("", 10);
}

// Otherwise the next restore would find a version of before, although a newer one was pushed.
TEST_F(GroupRestore, ARestoreWithoutRecordsTakesNoNumberThatTheRemoteHas) {
  {
    OneProcess group = open();
    push(group, 7, "seven");
    for (std::uint64_t value = 8; value < 14; ++value) push(group, value);
  }
  lose_all();
  restore("seven");
  {
    OneProcess group = open();
    push(group, 20);
  }
  lose_all();
  restore();
  expect_all("", 20);
}

TEST_F(GroupRestore, FilesThatAreNotTheGroupsAreRefused) {
  EXPECT_ERROR(not_found, restore(), "no version of a group");
  {
    OneProcess group = open();
    push(group, 1);
    EXPECT_ERROR(busy, restore(), "another job has the group open");
    EXPECT_ERROR(not_found, restore("absent"), "absent");
  }
  OneRank all;
  const TempDirectory other;
  {
    OneProcess another(other.path());
  }
  EXPECT_ERROR(invalid_argument,
               restore_group(base::posix_fs(), all,
                             {url(), other / "records", "", other / "store-{}", std::nullopt}, {}),
               "another group");
  OneProcess another(other.path(), "", "records",
                     std::make_shared<ObjectVersions>(base::posix_fs(), url()));
  EXPECT_ERROR(invalid_argument, push(another), "another store");
}

// A job that has lost its lock without noticing.
TEST_F(GroupRestore, AJobThatAnotherHasTakenOverPublishesNothing) {
  {
    OneProcess group = open();
    push(group, 1);
  }
  const auto there = records_there();
  const auto group = RecordDirectory::open(base::posix_fs(), records()).group();
  ObjectVersions later(base::posix_fs(), url());
  format::GroupRecord record = there[0];
  record.number += 5;
  record.epoch += 1;
  later.publish(group, record, record.epoch);
  ObjectVersions earlier(base::posix_fs(), url());
  record.number -= 1;
  EXPECT_ERROR(busy, earlier.publish(group, record, record.epoch - 1), "another job");
  ASSERT_EQ(records_there().size(), 1u);
  EXPECT_EQ(records_there()[0].number, record.number + 1);
}

TEST_F(GroupRestore, ADamagedRecordIsNoOlderVersion) {
  {
    OneProcess group = open();
    push(group, 1, "one");
    push(group, 2);
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(remote() + "/records/versions")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // the newest is first
  fs::resize_file(files[0], fs::file_size(files[0]) - 1);
  EXPECT_ERROR(corrupted, restore(), "versions/");
}

TEST(GroupRemoteUrl, TheUrlOfAPartKeepsTheOptions) {
  EXPECT_EQ(url_of_partition("file:///a/b/", 3), "file:///a/b/partition-3");
  EXPECT_EQ(url_of_records("s3://bucket/x?endpoint=https://h:1"),
            "s3://bucket/x/records?endpoint=https://h:1");
}

}  // namespace
}  // namespace vellum::group::test
