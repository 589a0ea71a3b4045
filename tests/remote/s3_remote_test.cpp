// Pushes and clones over S3: a server that fails repeatedly, and racing pushers.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <thread>

#include "base/expect_error.hpp"
#include "remote/remote_fixture.hpp"
#include "remote/replicator.hpp"
#include "remote/s3_server_lib.hpp"

namespace vellum::remote::test {
namespace {

class S3RemoteTest : public RemoteTest {
 protected:
  std::unique_ptr<ObjectStore> over_s3() const { return make_s3_engine(server.options()); }
  std::shared_ptr<StoreDirectory> clone_over_s3(const std::string& name) {
    clone(base::posix_fs(), "s3://bucket/pre/fix", dir.path(name), {}, nullptr, over_s3());
    return StoreDirectory::open(base::posix_fs(), dir.path(name));
  }
  S3Server server;
};

TEST_F(S3RemoteTest, AServerThatFailsEveryFifthTimeCostsTimeOnly) {
  constexpr std::array kFaults = {Fault::reset_before, Fault::lost_reply,  Fault::error_500,
                                  Fault::error_503,    Fault::cut_body,    Fault::twice,
                                  Fault::late,         Fault::flipped_body};
  server.fault = [&](const S3Request& request) {
    if (request.number % 5 != 0) return Fault::none;
    const Fault chosen = kFaults[request.number / 5 % kFaults.size()];
    // A flipped listing names other objects: only TLS protects it.
    return chosen == Fault::flipped_body && request.key.empty() ? Fault::late : chosen;
  };
  make(5);
  push_all(*store, over_s3());
  step("s5");
  push_all(*store, over_s3());
  const auto copy = clone_over_s3("c");
  expect_contents(*copy, contents);
  step("", 3, false);
  push_names(*store, {"main"}, over_s3());
  pull_names(*copy, {}, over_s3());
  expect_contents(*copy, contents);
}

// Concurrently: superblock, start of the last head, the six lists and pieces to which the push refers,
// a new piece and list; then the new head; then the witness and the copy of the head.
TEST_F(S3RemoteTest, ASmallPushTakesThreeRequestsInSequence) {
  make(4);
  push_all(*store, over_s3());
  step("s4", 2);
  // Eight connections: six objects to which the push refers, the head and the superblock. Then two
  // uploads, then the head; and at last the head before it, beside the newest copy.
  constexpr int kSideBySide = 8, kAll = kSideBySide + 2 + 3;
  std::atomic<int> arrived{0};
  std::atomic<bool> came_together{true};
  const auto wait_for_all = [&](int count) {
    for (int ms = 0; ms < 5000 && arrived < count; ++ms) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (arrived < count) came_together = false;
  };
  server.fault = [&](const S3Request&) {
    const int number = ++arrived;
    if (number <= kSideBySide) wait_for_all(kSideBySide);
    if (number > kAll - 2) wait_for_all(kAll);
    return Fault::none;
  };
  push_names(*store, {"s4"}, over_s3());
  EXPECT_TRUE(came_together);
  EXPECT_EQ(arrived, kAll);
  server.fault = nullptr;
  store::test::expect_same(*store::test::open_version(*clone_over_s3("c"), "s4"), contents["s4"]);
}

// Another store has pushed meanwhile: the last head that this store has seen is not the newest.
TEST_F(S3RemoteTest, APushBehindAnotherStoresGoesOnFromTheNewestHead) {
  make(2);
  push_all(*store, over_s3());
  const auto other = clone_over_s3("other");
  Line side(*other, "side", 9);
  side.begin();
  for (int i = 0; i < 3; ++i) {
    const std::string theirs = "theirs" + std::to_string(i), ours = "ours" + std::to_string(i);
    side.step(theirs);
    push_names(*other, {theirs}, over_s3());
    contents[theirs] = side.bytes();
    const auto objects = over_s3();
    if (i == 1) collect_remote(Remote(*objects, store->store_seal()), false, nullptr);
    step(ours);
    push_names(*store, {ours, "main"}, over_s3());
  }
  expect_contents(*clone_over_s3("c"), contents);
}

// The remote is emptied, and another copy of the store fills it: this store's cache is outdated.
TEST_F(S3RemoteTest, ARemoteThatWasEmptiedGetsEverythingAgain) {
  make(2);
  push_all(*store, over_s3());
  for (const auto& [key, body] : server.objects()) server.erase(key);
  step("s2");
  push_all(*store, over_s3());
  expect_contents(*clone_over_s3("c"), contents);
}

// The requests that the server gets, by method.
class Asked {
 public:
  explicit Asked(S3Server& server) : server_(server) {
    server_.fault = [&](const S3Request& request) {
      const std::lock_guard lock(mutex_);
      ++asked_[request.key.empty() && request.method == "GET" ? "LIST" : request.method];
      return Fault::none;
    };
  }
  ~Asked() { server_.fault = nullptr; }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  int operator[](const std::string& method) {
    const std::lock_guard lock(mutex_);
    return asked_[method];
  }

 private:
  S3Server& server_;
  std::mutex mutex_;  // guards the member below
  std::map<std::string, int> asked_;
};

TEST_F(S3RemoteTest, ACommitOfAReplicationNeedsNoListing) {
  make(2);
  auto writer = line.step_and_stay();
  Replicator replicator(*store, url(), {std::chrono::seconds(1), false}, over_s3());
  ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
  constexpr int kCommits = 4;
  {
    Asked asked(server);
    for (int i = 0; i < kCommits; ++i) {
      line.step_with(*writer);
      ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
    }
    EXPECT_EQ(asked["LIST"], 0);
    EXPECT_EQ(asked["PUT"], kCommits);  // the head, with a piece and its list
    // The witness and the head before.
    EXPECT_LE(asked["GET"], 2 * kCommits);
  }
  contents["main"] = line.bytes();
  expect_contents(*clone_over_s3("c"), contents);
}

TEST_F(S3RemoteTest, AReplicationNoticesAnotherPusherByItsNextHead) {
  make(2);
  Replicator replicator(*store, url(), {std::chrono::seconds(1), false}, over_s3());
  ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
  const auto other = clone_over_s3("other");
  Line side(*other, "side", 9);
  side.begin();
  for (int i = 0; i < 3; ++i) {
    const std::string theirs = "theirs" + std::to_string(i);
    side.step(theirs);
    push_names(*other, {theirs}, over_s3());
    contents[theirs] = side.bytes();
    const auto objects = over_s3();
    if (i == 1) collect_remote(Remote(*objects, store->store_seal()), false, nullptr);
    step("ours" + std::to_string(i));
    ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
  }
  expect_contents(*clone_over_s3("c"), contents);
}

// Also a moment after its last push, when it does not ask for the last head first.
TEST_F(S3RemoteTest, AReplicationFillsARemoteThatIsEmptiedBetweenTwoCommits) {
  make(2);
  Replicator replicator(*store, url(), {std::chrono::seconds(1), false}, over_s3());
  ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
  for (const auto& [key, body] : server.objects()) server.erase(key);
  step("s2");
  for (int i = 0; i < 3 && !replicator.push_new(); ++i) {
  }
  EXPECT_EQ(replicator.state().failure, "");
  const auto objects = over_s3();
  const Remote remote(*objects, store->store_seal());
  EXPECT_NO_THROW((void)objects->get(head_key(1), UINT64_MAX)) << "a head is on a lost one";
  EXPECT_TRUE(verify_remote(remote, true, nullptr).damages.empty());
  step("s3");
  ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
  const auto copy = clone_over_s3("c");
  EXPECT_TRUE(store::has_snapshot(*copy, "s2"));
  expect_contents(*copy, {{"main", contents["main"]}, {"s3", contents["s3"]}});
}

TEST_F(S3RemoteTest, ALookAtAThousandVersionsTakesThreeRequests) {
  make(1);
  push_all(*store, over_s3());
  const auto objects = over_s3();
  const Remote remote(*objects, store->store_seal());
  std::size_t small_heads = 0;
  for (int i = 0; i < 1000; ++i) {
    StoredHead base = remote.newest_head();
    Head next = base.head;
    RemoteVersion name = *next.find("s0");
    name.ref.name = fmt::format("v{:04}", i);
    name.ref.order = static_cast<std::uint64_t>(i) + 2;
    name.list.own.content.hash = base::sha256(std::as_bytes(std::span(name.ref.name)));
    next.versions.push_back(name);
    if (const auto table = remote.make_table(base)) {
      objects->put_if_absent(table->key, table->bytes);
      table->use(base);
    }
    const auto published = remote.publish(base, std::move(next));
    ASSERT_TRUE(published.has_value());
    small_heads += server.objects().at("pre/fix/" + head_key(published->head.number)).size() < 4096;
  }
  EXPECT_EQ(small_heads, 1000u);
  const std::uint64_t before = server.requests();
  EXPECT_EQ(newest_head_of(*objects).head.versions.size(), 1002u);
  EXPECT_EQ(server.requests() - before, 3u);
}

TEST_F(S3RemoteTest, PushersThatRaceAndAGcLoseNothing) {
  make(1);
  push_all(*store, over_s3());
  constexpr int kPushers = 3, kPushes = 6;
  std::vector<std::shared_ptr<StoreDirectory>> stores;
  for (int i = 0; i < kPushers; ++i) stores.push_back(clone_over_s3("c" + std::to_string(i)));
  std::vector<Contents> pushed(kPushers);
  std::vector<std::thread> threads;
  for (int i = 0; i < kPushers; ++i) {
    threads.emplace_back([&, i] {
      Line line_of(*stores[static_cast<std::size_t>(i)], "line" + std::to_string(i),
                   100u + static_cast<unsigned>(i));
      line_of.begin();
      for (int n = 0; n < kPushes; ++n) {
        const std::string name = "p" + std::to_string(i) + "-" + std::to_string(n);
        line_of.step(name, 3);
        push_names(*stores[static_cast<std::size_t>(i)], {name}, over_s3());
        pushed[static_cast<std::size_t>(i)][name] = line_of.bytes();
      }
    });
  }
  threads.emplace_back([&] {
    const auto objects = over_s3();
    for (int n = 0; n < kPushes; ++n)
      collect_remote(Remote(*objects, store->store_seal()), false, nullptr);
  });
  for (std::thread& thread : threads) thread.join();
  const auto all = clone_over_s3("all");
  for (const Contents& of_one : pushed) expect_contents(*all, of_one);
  const auto objects = over_s3();
  EXPECT_TRUE(verify_remote(Remote(*objects, store->store_seal()), true, nullptr).damages.empty());
}

TEST_F(S3RemoteTest, TwoStoresThatPushOneBranchAtOnceDoNotBothWin) {
  make(1);
  push_all(*store, over_s3());
  const std::vector<std::shared_ptr<StoreDirectory>> stores{clone_over_s3("a"), clone_over_s3("b")};
  std::vector<std::vector<std::byte>> bytes(2);
  for (std::size_t i = 0; i < 2; ++i) {
    Line other(*stores[i], "main", 1000 + i);
    other.go_on(line);
    other.step("", 2);
    bytes[i] = other.bytes();
  }
  std::atomic<std::size_t> winner{2}, wins{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      try {
        push_names(*stores[i], {"main"}, over_s3());
        winner = i;
        ++wins;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::busy) << e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(wins, 1u);
  const auto copy = clone_over_s3("w");
  store::test::expect_same(*store::test::open_version(*copy, "main"), bytes[winner]);
}

}  // namespace
}  // namespace vellum::remote::test
