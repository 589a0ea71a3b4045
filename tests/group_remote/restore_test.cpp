// A group's versions in object stores, with a job of one process: what is complete there, what goes,
// and what a restore refuses.
#include "group_remote/restore.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vellum/group.hpp>

#include "base/temp_directory.hpp"
#include "group_remote/object_versions.hpp"
#include "group_remote/remote_records.hpp"
#include "remote/session/open_engine.hpp"
#include "store/support.hpp"
#include "support/one_process_group.hpp"

namespace vellum::group {
namespace {

namespace fs = std::filesystem;
using vellum::test::OneProcess;
using vellum::test::TempDirectory;

#define EXPECT_ERROR(code, statement, part)                                               \
  EXPECT_THAT(store::test::error_text(Errc::code, [&] { static_cast<void>(statement); }), \
              testing::HasSubstr(part))

class GroupRestore : public testing::Test {
 protected:
  GroupRestore() { fs::create_directory(remote()); }

  std::string remote() const { return directory_ / "remote"; }
  std::string url() const { return "file://" + remote(); }
  std::string records() const { return directory_ / "records"; }
  std::string store(std::uint32_t p) const { return directory_ / ("store-" + std::to_string(p)); }

  OneProcess open() const {
    return OneProcess(directory_.path(), "", "records",
                      std::make_shared<ObjectVersions>(base::posix_fs(), url()));
  }
  static void push(OneProcess& group) { group.job().finish_push(group.job().push_async("")); }
  // Makes a version of this content, and pushes it.
  static void push(OneProcess& group, std::uint64_t value, const std::string& name = "") {
    group.set(value);
    group.job().snapshot(name, "");
    push(group);
  }
  RestoreReport restore(const std::string& version = "") const {
    OneRank all;
    return restore_group(base::posix_fs(), all,
                         {url(), records(), version, directory_ / "store-{}", std::nullopt}, {});
  }
  std::vector<format::GroupRecord> records_there() const {
    const auto objects = remote::open_object_store(base::posix_fs(), url_of_records(url()));
    const RemoteRecords there(*objects);
    std::vector<format::GroupRecord> out;
    for (const std::uint64_t number : there.numbers()) {
      out.push_back(there.read(number, there.read_group()));
    }
    return out;
  }
  std::set<format::GroupPin> pins_there(std::uint32_t p) const {
    const auto group = RecordDirectory::open(base::posix_fs(), records()).group();
    return pins_at(base::posix_fs(), url(), group.id, p);
  }
  std::uint64_t word_of(const std::string& version, std::uint32_t p) const {
    return GroupVersion::open(records(), version).open_partition(p).root<const std::uint64_t>();
  }
  void expect_all(const std::string& version, std::uint64_t value) const {
    for (std::uint32_t p = 0; p < 3; ++p)
      EXPECT_EQ(word_of(version, p), value) << "partition " << p;
  }
  void lose_all() const {
    for (std::uint32_t p = 0; p < 3; ++p) fs::remove_all(store(p));
    fs::remove_all(records());
  }

  const TempDirectory directory_;
};

TEST_F(GroupRestore, ALostStoreComesBackAtTheNewestVersionThatIsComplete) {
  {
    OneProcess group = open();
    push(group, 7, "seven");
    push(group, 8);
    group.set(9);
    group.job().snapshot("nine", "");  // in the stores alone
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
  // What was never pushed is gone with its store, and said to be.
  const auto problems = verify_group(records(), true).problems;
  for (const GroupProblem& problem : problems) EXPECT_EQ(problem.partition, 1u);
  EXPECT_EQ(problems.size(), 2u) << "seven can be fetched, nine cannot";
  EXPECT_EQ(restore("seven").partitions_fetched, 1u);
  expect_all("seven", 7);
  expect_all("", 7);
}

TEST_F(GroupRestore, AllIsLost) {
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
  push(group);  // once more: the thread that forgets has ended before it begins
  EXPECT_EQ(records_there().size(), 2u);
  const std::set<format::GroupPin> needed = {there[0].pin, there[1].pin};
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_EQ(pins_there(p), needed);
}

TEST_F(GroupRestore, AVersionThatOnePartitionHasNotPushedIsNotThere) {
  OneProcess group = open();
  push(group, 1);
  fs::rename(remote() + "/partition-2", remote() + "/away");
  std::ofstream(remote() + "/partition-2") << "no directory";
  group.set(2);
  group.job().snapshot("two", "");
  const auto pending = group.job().push_async("");
  group.set(3);
  group.job().snapshot("", "");
  EXPECT_THROW(group.job().finish_push(pending), Error);
  EXPECT_EQ(records_there().size(), 1u);
  EXPECT_EQ(pins_there(0).size(), 2u) << "what it has pushed is nobody's";
  fs::remove(remote() + "/partition-2");
  fs::rename(remote() + "/away", remote() + "/partition-2");
  push(group);
  EXPECT_EQ(records_there().size(), 1u);
  push(group);
  EXPECT_EQ(pins_there(0).size(), 1u) << "and is forgotten";
}

// The pin goes when nobody needs it, and not before.
TEST_F(GroupRestore, AVersionOnItsWayKeepsItsPins) {
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
    const auto core = store::StoreCore::open(base::posix_fs(), store(p));
    EXPECT_EQ(pins_in(*core, id, p).size(), 1u);
  }
  lose_all();
  restore();
  expect_all("", 5);
}

TEST_F(GroupRestore, RefusesWhatIsNotTheGroups) {
  EXPECT_ERROR(not_found, restore(), "no version of a group is there");
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

// A job that has lost its lock and not noticed.
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

TEST(GroupRemoteUrl, HasItsPartsBehindThePath) {
  EXPECT_EQ(url_of_partition("file:///a/b/", 3), "file:///a/b/partition-3");
  EXPECT_EQ(url_of_records("s3://bucket/x?endpoint=https://h:1"),
            "s3://bucket/x/records?endpoint=https://h:1");
}

}  // namespace
}  // namespace vellum::group
