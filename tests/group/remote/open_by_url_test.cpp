// A global version that one process reads only from the remote: no store, no records, no restore.
#include <fstream>

#include "group/remote/remote_group_fixture.hpp"

namespace vellum::group::test {
namespace {

namespace fs = std::filesystem;

class GroupByUrl : public RemoteGroupTest {
 protected:
  // "seven", an older version, and then 8 without a name. Only the remote exists afterwards.
  void push_two_and_lose_all() {
    {
      OneProcess group = open();
      push(group, 7, "seven");
      push(group, 8);
    }
    lose_all();
  }
  void expect_all_there(const std::string& version, std::uint64_t value) const {
    const GroupVersion there = GroupVersion::open(url(), version);
    ASSERT_EQ(there.partitions(), 3u);
    for (std::uint32_t p = 0; p < 3; ++p) {
      EXPECT_EQ(there.open_partition(p).root<const std::uint64_t>(), value) << "partition " << p;
    }
  }
  // Replaces the newest record.
  void forge(const std::function<void(format::GroupRecord&)>& change) const {
    const auto objects = remote::open_object_store(base::posix_fs(), url_of_records(url()));
    const RemoteRecords there(*objects);
    const format::GroupFile group = there.read_group();
    format::GroupRecord record = there.find("", group);
    there.remove(record.number);
    change(record);
    there.publish(record, group, record.epoch);
  }
};

TEST_F(GroupByUrl, AReaderSeesAllPartitionsOfEachCompleteVersion) {
  push_two_and_lose_all();
  expect_all_there("", 8);
  expect_all_there("seven", 7);
  const auto versions = group_versions(url());
  ASSERT_EQ(versions.size(), 2u);
  EXPECT_EQ(versions[0].name, "seven") << "oldest first";
  expect_all_there(std::to_string(versions[0].number), 7);
  expect_all_there(std::to_string(versions[1].number), 8);

  const GroupVersion seven = GroupVersion::open(url(), "seven");
  EXPECT_EQ(seven.info().number, versions[0].number);
  EXPECT_EQ(seven.info().region_bytes, 3 * OneProcess::kPartitionBytes);
  EXPECT_EQ(seven.partition(2).store, url() + "/partition-2");
  seven.export_partition(1, directory_ / "plain");
  std::uint64_t word = 0;
  std::ifstream(directory_ / "plain").read(reinterpret_cast<char*>(&word), sizeof word);
  EXPECT_EQ(word, 7u);
  EXPECT_FALSE(fs::exists(store(0))) << "nothing was restored";
}

// A name takes precedence over a number, as in a directory of records.
TEST_F(GroupByUrl, AVersionMayHaveTheNumberOfAnotherAsItsName) {
  {
    OneProcess group = open();
    push(group, 5, "4");  // number 2
    push(group, 6, "six");
    push(group, 7);  // number 4
    expect_all("4", 5);
    expect_all("3", 6);
  }
  expect_all_there("4", 5);
  expect_all_there("3", 6);
}

TEST_F(GroupByUrl, AReaderSeesVersionsAfterARestore) {
  push_two_and_lose_all();
  restore();
  {
    OneProcess group = open();
    push(group);  // the restored version, whose pins have another order here
    push(group, 9, "nine");
  }
  lose_all();
  expect_all_there("seven", 7);
  expect_all_there("nine", 9);
  EXPECT_TRUE(verify_group(url(), true).problems.empty());
}

TEST_F(GroupByUrl, WhatIsOpenStaysWhenTheNextVersionTakesItsPlace) {
  OneProcess group = open();
  push(group, 1);
  const GroupVersion first = GroupVersion::open(url());
  const Region open_before = first.open_partition(0);
  push(group, 2);
  push(group);  // now the thread that removes pins has ended
  EXPECT_EQ(open_before.root<const std::uint64_t>(), 1u);
  EXPECT_ERROR(not_found, first.open_partition(1), "partition 1");
  expect_all_there("", 2);
}

TEST_F(GroupByUrl, PartitionsThatTheRecordDoesNotNameAreRefused) {
  push_two_and_lose_all();
  forge([](format::GroupRecord& record) { record.partitions[1].digest[0] ^= std::byte{1}; });
  EXPECT_ERROR(corrupted, GroupVersion::open(url()).open_partition(1), "partition 1");
  EXPECT_EQ(GroupVersion::open(url()).open_partition(0).root<const std::uint64_t>(), 8u);
  const auto report = verify_group(url());
  EXPECT_EQ(report.versions, 2u);
  EXPECT_EQ(report.complete, 1u);
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].store, url() + "/partition-1");
  forge([](format::GroupRecord& record) {
    std::swap(record.partitions[1].store_id, record.partitions[2].store_id);
  });
  EXPECT_ERROR(not_found, GroupVersion::open(url()).open_partition(2), "another one");
  fs::rename(remote() + "/partition-0", remote() + "/moved");
  EXPECT_ERROR(not_found, GroupVersion::open(url()).open_partition(0), "partition 0");
}

TEST_F(GroupByUrl, ADamagedRecordHidesNoOtherThatIsAskedFor) {
  push_two_and_lose_all();
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(remote() + "/records/versions")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // the newest is first
  fs::resize_file(files[0], fs::file_size(files[0]) - 1);
  EXPECT_ERROR(corrupted, GroupVersion::open(url()), "versions/");
  EXPECT_ERROR(corrupted, group_versions(url()), "versions/");
  expect_all_there("seven", 7);
}

TEST_F(GroupByUrl, VerifyReadsTheData) {
  push_two_and_lose_all();
  EXPECT_TRUE(verify_group(url(), true).problems.empty());
  std::uint64_t damaged = 0;
  for (const auto& entry : fs::recursive_directory_iterator(remote() + "/partition-2")) {
    if (!entry.is_regular_file() || entry.path().string().find("/pieces/") == std::string::npos) {
      continue;
    }
    fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
    ++damaged;
  }
  ASSERT_GT(damaged, 0u);
  EXPECT_TRUE(verify_group(url()).problems.empty()) << "the names are there";
  const auto problems = verify_group(url(), true).problems;
  ASSERT_EQ(problems.size(), 2u);
  for (const GroupProblem& problem : problems) EXPECT_EQ(problem.partition, 2u);
}

TEST_F(GroupByUrl, BadInput) {
  EXPECT_ERROR(not_found, GroupVersion::open(url()), "no version of a group");
  push_two_and_lose_all();
  EXPECT_ERROR(not_found, GroupVersion::open(url(), "absent"), "absent");
  EXPECT_ERROR(invalid_argument, GroupVersion::open(url()).open_partition(3), "no partition 3");
  EXPECT_ERROR(invalid_argument, GroupVersion::open("file://", ""), "file://");
  EXPECT_ERROR(invalid_argument, GroupVersion::open(records(), "", RemoteOptions()), records());
  EXPECT_ERROR(invalid_argument, GroupVersion::open(url(), "", store(0)), store(0));
  EXPECT_ERROR(invalid_argument, verify_group(url(), false, store(0)), store(0));
  EXPECT_ERROR(invalid_argument, collect_group_garbage(url()), "only read");
  EXPECT_ERROR(invalid_argument, remove_group_version(url(), "seven"), "only read");
}

// Options are passed to the partitions: copies of pieces are in the given cache.
TEST_F(GroupByUrl, CopiesAreInTheGivenCache) {
  push_two_and_lose_all();
  RemoteOptions options;
  options.cache_directory = directory_ / "cache";
  const GroupVersion there = GroupVersion::open(url(), "seven", options);
  EXPECT_EQ(there.open_partition(0).root<const std::uint64_t>(), 7u);
  EXPECT_TRUE(fs::exists(directory_ / "cache"));
}

}  // namespace
}  // namespace vellum::group::test
