// A group's versions on a real S3 server (support/s3_url.hpp): pushed, read by URL, restored.
#include "group/remote/remote_group_fixture.hpp"
#include "support/s3_url.hpp"

namespace vellum::group::test {
namespace {

class GroupOnS3 : public RemoteGroupTest {
 protected:
  void SetUp() override {
    if (url_.empty()) GTEST_SKIP() << vellum::test::kNoS3;
  }
  std::string url() const override { return url_; }

  void expect_all_there(const std::string& version, std::uint64_t value) const {
    const GroupVersion there = GroupVersion::open(url(), version);
    for (std::uint32_t p = 0; p < 3; ++p) {
      EXPECT_EQ(there.open_partition(p).root<const std::uint64_t>(), value) << "partition " << p;
    }
  }

 private:
  const std::string url_ = vellum::test::new_s3_url();
};

TEST_F(GroupOnS3, VersionsAreReadByUrlWithoutARestore) {
  {
    OneProcess group = open();
    push(group, 7, "seven");
    expect_all_there("", 7);
    push(group, 8);
    group.set(9);
    group.job().snapshot("nine", "");  // only in the stores
  }
  lose_all();
  expect_all_there("seven", 7);
  expect_all_there("", 8);
  EXPECT_ERROR(not_found, GroupVersion::open(url(), "nine"), "nine");
  const auto report = verify_group(url(), true);
  EXPECT_EQ(report.complete, 2u);
  EXPECT_TRUE(report.problems.empty());
}

TEST_F(GroupOnS3, LostStoresComeBack) {
  {
    OneProcess group = open();
    push(group, 7, "seven");
  }
  std::filesystem::remove_all(store(1));
  EXPECT_EQ(restore().partitions_fetched, 1u);
  expect_all("", 7);
  {
    OneProcess group = open();
    push(group, 8);
  }
  lose_all();
  EXPECT_EQ(restore().partitions_fetched, 3u);
  expect_all("", 8);
  EXPECT_TRUE(verify_group(records(), true).problems.empty());
}

TEST_F(GroupOnS3, OnlyVersionsThatARecordNeedsStay) {
  OneProcess group = open();
  push(group, 1);
  push(group, 2, "two");
  push(group, 3);
  push(group, 4);
  push(group);  // once more: the thread that removes pins ends before it begins
  const auto there = records_there();
  ASSERT_EQ(there.size(), 2u);
  EXPECT_EQ(there[1].name, "two");
  const std::set<format::GroupPin> needed = {there[0].pin, there[1].pin};
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_EQ(pins_there(p), needed);
}

TEST_F(GroupOnS3, AJobThatAnotherHasTakenOverPublishesNothing) {
  OneProcess group = open();
  push(group, 1);
  const auto there = records_there();
  const auto id = RecordDirectory::open(base::posix_fs(), records()).group();
  format::GroupRecord record = there[0];
  record.number += 5;
  record.epoch += 1;
  ObjectVersions(base::posix_fs(), url()).publish(id, record, record.epoch);
  EXPECT_ERROR(busy, push(group, 2), "another job");
  ASSERT_EQ(records_there().size(), 1u);
  EXPECT_EQ(records_there()[0].number, record.number);
}

}  // namespace
}  // namespace vellum::group::test
