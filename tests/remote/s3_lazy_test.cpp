// Versions opened by an S3 URL: a failing server, and few requests.
#include <gtest/gtest.h>

#include "remote/lazy_fixture.hpp"
#include "remote/s3_server_lib.hpp"

namespace vellum::remote::test {
namespace {

class S3LazyTest : public LazyTest {
 protected:
  std::unique_ptr<ObjectStore> over_s3() const { return make_s3_engine(server.options()); }
  std::shared_ptr<StoreDirectory> open_over_s3() const {
    return open_remote(base::posix_fs(), "s3://bucket/pre/fix", options(), over_s3());
  }
  S3Server server;
};

TEST_F(S3LazyTest, AServerThatFailsEveryThirdTimeCostsTimeOnly) {
  make(5);
  push_all(*store, over_s3());
  constexpr std::array kFaults = {Fault::reset_before, Fault::lost_reply, Fault::error_500,
                                  Fault::error_503,    Fault::cut_body,   Fault::late,
                                  Fault::flipped_body};
  server.fault = [&](const S3Request& request) {
    if (request.number % 3 != 0) return Fault::none;
    const Fault chosen = kFaults[request.number / 3 % kFaults.size()];
    return chosen == Fault::flipped_body && request.key.empty() ? Fault::late : chosen;
  };
  const auto lazy = open_over_s3();
  for (const auto& [name, bytes] : contents) {
    store::test::expect_same(*store::test::open_version(*lazy, name), bytes);
  }
}

// The superblock concurrently with the listing, then the head; the list of the version; the pieces.
TEST_F(S3LazyTest, OpeningTakesThreeRequestsAndAVersionOneMore) {
  make(8);
  push_all(*store, over_s3());
  std::mutex mutex;  // guards the members below
  std::map<std::string, int> pieces_read;
  std::uint64_t others = 0;
  server.fault = [&](const S3Request& request) {
    const std::lock_guard lock(mutex);
    if (request.key.find(kPiecePrefix) != std::string::npos) {
      ++pieces_read[request.key];
    } else {
      ++others;
    }
    return Fault::none;
  };
  const auto counted = [&] {
    const std::lock_guard lock(mutex);
    for (const auto& [key, count] : pieces_read) EXPECT_EQ(count, 1) << key;
    return others;
  };
  const std::uint64_t before = counted();
  const auto lazy = open_over_s3();
  EXPECT_EQ(counted() - before, 3u);
  for (const std::string name : {"s0", "s7", "s3"}) {
    const std::uint64_t opened = counted();
    store::test::expect_same(*store::test::open_version(*lazy, name), contents[name]);
    // The last version's list has come with the copy of the head.
    EXPECT_EQ(counted() - opened, name == "s7" ? 0u : 1u) << name;
  }
}

}  // namespace
}  // namespace vellum::remote::test
