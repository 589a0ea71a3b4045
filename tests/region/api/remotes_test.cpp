// Versions that are pushed to a remote and pulled from it, by the C++ and the C interface.
#include <gtest/gtest.h>
#include <vellum/vellum.h>

#include <cstring>
#include <filesystem>
#include <vellum/store.hpp>

#include "interfaces/c/capi_fixture.hpp"

namespace vellum::test {
namespace {

class RemotesTest : public CApiTest {
 protected:
  std::string url() const { return "file://" + directory_.path() + "/remote"; }
  std::string clone_path() const { return directory_.path() + "/clone"; }
  void snapshot(const char* name, std::uint64_t word) {
    words()[7] = word;
    ASSERT_EQ(vellum_snapshot(region_, name, nullptr, nullptr), VELLUM_OK) << message();
  }
  static std::uint64_t word_of(Store store, const std::string& name) {
    RegionOptions small;
    small.capacity_bytes = 64 * kCRegionBytes;
    return store.open_version(name, small).root<const std::uint64_t[8]>()[7];
  }
};

TEST_F(RemotesTest, AStoreIsPushedAndPulled) {
  snapshot("a", 1);
  Store store = Store::open(path_);
  EXPECT_TRUE(store.add_remote("origin", url()));
  ASSERT_EQ(store.remotes().size(), 1u);
  EXPECT_EQ(store.remotes()[0].url, url());
  std::uint64_t told = 0;
  const PushReport pushed = store.push("origin", {}, [&](const Progress&) { ++told; });
  EXPECT_EQ(pushed.versions.size(), 2u);
  EXPECT_GT(pushed.bytes_uploaded, 0u);
  EXPECT_GT(told, 0u);
  EXPECT_EQ(Store::clone(url(), clone_path()).versions.size(), 2u);
  Store clone = Store::open(clone_path());
  EXPECT_EQ(word_of(clone, "a"), 1u);
  EXPECT_EQ(clone.remotes()[0].name, "origin");
  snapshot("b", 2);
  store.push("origin", {{"b"}, false});
  EXPECT_FALSE(clone.pull("origin", {{"b"}}).versions[0].was_there);
  EXPECT_EQ(word_of(clone, "b"), 2u);
  store.remove_remote("origin");
  EXPECT_TRUE(store.remotes().empty());
}

TEST_F(RemotesTest, PushAndPullInC) {
  snapshot("a", 5);
  ASSERT_EQ(vellum_add_remote(store_, "origin", url().c_str(), nullptr), VELLUM_OK) << message();
  std::string seen;
  const auto see = [](const vellum_remote_info* remote, void* context) {
    *static_cast<std::string*>(context) = remote->url;
  };
  ASSERT_EQ(vellum_remotes(store_, see, &seen), VELLUM_OK);
  EXPECT_EQ(seen, url());
  const char* names[] = {"a", nullptr};
  vellum_push_options push = VELLUM_PUSH_OPTIONS_INIT;
  push.versions = names;
  vellum_push_report pushed = VELLUM_PUSH_REPORT_INIT;
  seen.clear();
  const auto moved = [](const vellum_moved_version* version, void* context) {
    static_cast<std::string*>(context)->append(version->name);
  };
  ASSERT_EQ(vellum_push(store_, "origin", &push, &pushed, moved, nullptr, &seen), VELLUM_OK)
      << message();
  EXPECT_EQ(seen, "a");
  EXPECT_GT(pushed.bytes_uploaded, 0u);
  vellum_pull_report pulled = VELLUM_PULL_REPORT_INIT;
  ASSERT_EQ(vellum_clone(url().c_str(), clone_path().c_str(), nullptr, &pulled, nullptr, nullptr,
                         nullptr),
            VELLUM_OK)
      << message();
  EXPECT_GT(pulled.bytes_read, 0u);
  EXPECT_EQ(word_of(Store::open(clone_path()), "a"), 5u);
  vellum_store* clone = nullptr;
  ASSERT_EQ(vellum_store_open(clone_path().c_str(), &clone), VELLUM_OK);
  EXPECT_EQ(vellum_pull(clone, "origin", nullptr, nullptr, nullptr, nullptr, nullptr), VELLUM_OK);
  vellum_store_close(clone);
  EXPECT_EQ(vellum_remove_remote(store_, "origin"), VELLUM_OK);
  EXPECT_EQ(vellum_push(store_, "origin", nullptr, nullptr, nullptr, nullptr, nullptr),
            VELLUM_ERR_NOT_FOUND);
}

// Packs stay at the remote until they are requested.
TEST_F(RemotesTest, ALazyCloneInC) {
  snapshot("a", 5);
  ASSERT_EQ(vellum_add_remote(store_, "origin", url().c_str(), nullptr), VELLUM_OK) << message();
  ASSERT_EQ(vellum_push(store_, "origin", nullptr, nullptr, nullptr, nullptr, nullptr), VELLUM_OK);
  vellum_pull_options lazily = VELLUM_PULL_OPTIONS_INIT;
  lazily.lazy = 1;
  ASSERT_EQ(vellum_clone(url().c_str(), clone_path().c_str(), &lazily, nullptr, nullptr, nullptr,
                         nullptr),
            VELLUM_OK)
      << message();
  const std::string packs = clone_path() + "/packs";
  EXPECT_TRUE(std::filesystem::is_empty(packs));
  const std::string cache = directory_.path() + "/cache";
  vellum_remote_options options = VELLUM_REMOTE_OPTIONS_INIT;
  options.cache_directory = cache.c_str();
  vellum_store* clone = nullptr;
  ASSERT_EQ(vellum_store_open_remote(clone_path().c_str(), &options, &clone), VELLUM_OK)
      << message();
  vellum_region* region = nullptr;
  ASSERT_EQ(vellum_region_open(clone, "main", &options_, &region), VELLUM_OK) << message();
  auto* const here = static_cast<std::uint64_t*>(vellum_region_data(region));
  EXPECT_EQ(here[7], 5u);
  EXPECT_FALSE(std::filesystem::is_empty(cache));
  here[7] = 6;
  ASSERT_EQ(vellum_snapshot(region, "b", nullptr, nullptr), VELLUM_OK) << message();
  vellum_region_close(region);
  const char* names[] = {"b", nullptr};
  vellum_push_options push = VELLUM_PUSH_OPTIONS_INIT;
  push.versions = names;
  ASSERT_EQ(vellum_push(clone, "origin", &push, nullptr, nullptr, nullptr, nullptr), VELLUM_OK)
      << message();
  EXPECT_EQ(vellum_remove_remote(clone, "origin"), VELLUM_ERR_BUSY);
  vellum_pull_options wholly = VELLUM_PULL_OPTIONS_INIT;
  wholly.packs = 1;
  vellum_pull_report pulled = VELLUM_PULL_REPORT_INIT;
  ASSERT_EQ(vellum_pull(clone, "origin", &wholly, &pulled, nullptr, nullptr, nullptr), VELLUM_OK)
      << message();
  EXPECT_GT(pulled.pieces_read, 0u);
  ASSERT_EQ(vellum_remove_remote(clone, "origin"), VELLUM_OK) << message();
  vellum_store_close(clone);
  std::filesystem::remove_all(directory_.path() + "/remote");
  std::filesystem::remove_all(cache);
  EXPECT_EQ(word_of(Store::open(clone_path()), "a"), 5u);
  EXPECT_EQ(word_of(Store::open(clone_path()), "b"), 6u);
}

TEST_F(RemotesTest, AReplicationSendsTheLastCommitAtItsEnd) {
  snapshot("a", 1);
  Store store = Store::open(path_);
  int calls = 0;
  const auto told = [&](const ReplicateState& state) {
    EXPECT_EQ(state.failure, "");
    if (++calls == 1) snapshot("b", 2);
    return calls < 2;
  };
  const ReplicateState last = store.replicate(url(), {}, told);
  EXPECT_GE(last.pushes, 2u);
  EXPECT_EQ(store.remotes()[0].name, "replica");
  Store::clone(url(), clone_path());
  EXPECT_EQ(word_of(Store::open(clone_path()), "b"), 2u);
  snapshot("c", 3);
  const auto end_at_once = [](const vellum_replicate_state*, void*) { return 1; };
  ASSERT_EQ(vellum_replicate(store_, url().c_str(), nullptr, end_at_once, nullptr), VELLUM_OK)
      << message();
  EXPECT_EQ(Store::open(clone_path()).pull("origin", {{"c"}}).versions.size(), 1u);
}

// A callback that wants no more ends the call, and the remote stays as it was.
TEST_F(RemotesTest, ACallbackEndsAPush) {
  snapshot("a", 5);
  ASSERT_EQ(vellum_add_remote(store_, "origin", url().c_str(), nullptr), VELLUM_OK) << message();
  const auto stop = [](std::uint64_t, std::uint64_t, const char*, void*) { return 1; };
  EXPECT_EQ(vellum_push(store_, "origin", nullptr, nullptr, nullptr, stop, nullptr),
            VELLUM_ERR_STOPPED);
  EXPECT_EQ(vellum_push(store_, "origin", nullptr, nullptr, nullptr, nullptr, nullptr), VELLUM_OK);
}

}  // namespace
}  // namespace vellum::test
