// A locked remote at a real server (tools/with-s3.sh), whose credentials are stolen.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/expect_error.hpp"
#include "base/utc_time.hpp"
#include "remote/engine/url.hpp"
#include "remote/locks.hpp"
#include "remote/remote_fixture.hpp"
#include "remote/thief.hpp"

namespace vellum::remote::test {
namespace {

using std::chrono::system_clock;

class LockedServerTest : public RemoteTest {
 protected:
  void SetUp() override {
    const char* const given = std::getenv("VELLUM_TEST_S3_LOCK_URL");
    if (given == nullptr) GTEST_SKIP() << "no server: tools/with-s3.sh versitygw COMMAND";
    const std::string text = given;
    const std::size_t mark = text.find('?');
    place = fmt::format("{}/{}-{}{}", text.substr(0, mark), ::getpid(),
                        testing::UnitTest::GetInstance()->current_test_info()->line(),
                        text.substr(mark));
    remove_remote_file(*store, "origin");
    AddRemoteOptions options;
    options.lock = std::chrono::days(1);
    options.encrypt = are_objects_encrypted();
    options.key = test_key();
    options.one_writer = true;  // versitygw lets two creators win
    add_remote(*store, "origin", place, options);
  }
  // A server may know times by seconds only.
  static system_clock::time_point moment() {
    std::this_thread::sleep_for(std::chrono::milliseconds(2100));
    const auto out = system_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(2100));
    return out;
  }
  std::shared_ptr<StoreDirectory> clone_at(const std::string& name, system_clock::time_point time) {
    clone(base::posix_fs(), url_at(place, base::utc_nanoseconds(time)), dir.path(name), {},
          nullptr);
    return StoreDirectory::open(base::posix_fs(), dir.path(name));
  }
  std::string place;
};

// VELLUM_LONG=1: a thousand times.
TEST_F(LockedServerTest, AStolenKeyLosesNothing) {
  make(3);
  push_all(*store);
  const auto first = moment();
  const Contents first_contents = contents;
  step("s3", 3);
  push_all(*store);
  const auto before = moment();
  const auto stolen = open_object_store(base::posix_fs(), place);
  Thief thief(*stolen, 11);
  const bool is_long = std::getenv("VELLUM_LONG") != nullptr;
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    thief.destroy(is_long ? 250 : 30);
    expect_contents(*clone_at("c" + std::to_string(round), before), contents);
  }
  EXPECT_GT(thief.refused(), 5);
  for (const ObjectInfo& object : stolen->list("", SIZE_MAX)) stolen->remove(object.key);
  expect_contents(*clone_at("first", first), first_contents);
  expect_contents(*clone_at("last", before), contents);
  const UnlockedRemote then =
      unlock_remote(open_object_store(base::posix_fs(), url_at(place, base::utc_seconds(before))));
  EXPECT_TRUE(verify_remote(Remote(*then.objects, then.seal), true, nullptr).damages.empty());
}

TEST_F(LockedServerTest, LocksAreExtendedAndGcDoesNotFail) {
  make(3);
  push_all(*store);
  const UnlockedRemote unlocked = unlock_remote(open_object_store(base::posix_fs(), place));
  const Remote remote(*unlocked.objects, unlocked.seal);
  const LockRenewal fresh = renew_locks(remote, std::chrono::days(1), nullptr);
  EXPECT_GT(fresh.locked, 5U);
  EXPECT_EQ(fresh.extended, 0U);
  const LockRenewal longer = renew_locks(remote, std::chrono::days(2), nullptr);
  EXPECT_EQ(longer.extended, longer.locked);
  EXPECT_EQ(renew_locks(remote, std::chrono::days(2), nullptr).extended, 0U);
  forget_names(remote, {"s0", "s1"});
  const RemoteGcReport report = collect_remote(remote, false, nullptr);
  EXPECT_GT(report.objects_removed, 0U);
  EXPECT_EQ(report.lock, std::chrono::days(1));
  contents.erase("s0");
  contents.erase("s1");
  clone(base::posix_fs(), place, dir.path("c"), {}, nullptr);
  expect_contents(*StoreDirectory::open(base::posix_fs(), dir.path("c")), contents);
}

}  // namespace
}  // namespace vellum::remote::test
