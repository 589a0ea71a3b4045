// Limits for the transfers with an object store.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/expect_error.hpp"
#include "remote/remote_fixture.hpp"

namespace vellum::remote::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class LimitedObjectsTest : public RemoteTest {
 protected:
  std::unique_ptr<ObjectStore> limited(const TransferLimits& limits) const {
    return open_object_store(base::posix_fs(), url(), 1000ms, limits);
  }
};

// A transfer is never faster than the rate, so only a missing limit fails.
TEST_F(LimitedObjectsTest, TransfersTakeTheTimeOfTheirBytes) {
  const auto objects = limited({.bytes_per_second = 1u << 20});
  const std::vector<std::byte> bytes(100u << 10);
  const auto start = Clock::now();
  std::thread beside([&] { objects->put("a", bytes); });
  objects->put_if_absent("b", bytes);
  beside.join();
  EXPECT_GE(Clock::now() - start, 195ms);
  EXPECT_EQ(objects->get("a", 1u << 20), bytes);
  objects->get_range("b", {0, bytes.size()});
  EXPECT_GE(Clock::now() - start, 390ms);
}

TEST_F(LimitedObjectsTest, AStopEndsTheWait) {
  const auto objects = limited({.bytes_per_second = 1});
  const std::vector<std::byte> bytes(1u << 20);  // 12 days
  std::thread stops([&] { objects->stop(); });
  EXPECT_ERRC(objects->put("a", bytes), Errc::io);
  stops.join();
  EXPECT_TRUE(this->objects()->list("", 10).empty());
}

TEST_F(LimitedObjectsTest, TheNumberOfConnectionsIsTheGivenOne) {
  EXPECT_EQ(limited({.connections = 3})->connections(), 3u);
  EXPECT_EQ(limited({})->connections(), objects()->connections());
  make(2);
  push_all(*store, limited({.connections = 1}));
  pull_names(*clone_to("c"), {}, limited({.connections = 1}));
}

}  // namespace
}  // namespace vellum::remote::test
