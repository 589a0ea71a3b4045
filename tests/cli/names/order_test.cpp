// Snapshots have their own order and time: which of two is newer depends neither on the clock nor
// on their commits.
#include <stdlib.h>

#include "run/run_lib.hpp"
#include "support/sanitizers.hpp"

namespace vellum::cli_test {
namespace {

class Order : public CliTest {
 protected:
  // This does the same with a clock that is a year behind.
  static Result must_a_year_ago(const Arguments& arguments) {
    const Result result = run(arguments, [] {
      ::setenv("LD_PRELOAD", VELLUM_CLOCK_BACK, 1);
      ::setenv("VELLUM_TEST_CLOCK_BACK", "31536000", 1);
    });
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }
  static std::string names(const std::string& store) { return must({"log", store, "--names"}).out; }
};

TEST_F(Order, AClockThatIsSetBackDoesNotChangeTheOrderNoSanitizer) {
  const std::string store = make_store_with({noise(1, 1)});
  const std::string f = file("f", noise(1, 2));
  must_a_year_ago({"import", store, "main", f, "--snapshot", "newest"});
  const auto newest = must({"show", store, "newest", "--json"}).json();
  const auto v1 = must({"show", store, "v1", "--json"}).json();
  ASSERT_LT(newest.at("created_ns"), v1.at("created_ns")) << "the clock was not set back";
  EXPECT_GT(newest.at("order"), v1.at("order"));
  EXPECT_EQ(names(store), "main\nnewest\nv1\n");
  EXPECT_EQ(must({"snapshot", store, "--names"}).out, "newest\nv1\n");
  must({"forget", store, "--keep-last", "1"});
  EXPECT_EQ(names(store), "main\nnewest\n");
}

TEST_F(Order, SnapshotsOfOneCommitAreInTheOrderOfTheirCreation) {
  const std::string store = make_store_with({noise(1, 1)});
  for (const char* name : {"b", "d", "a", "c"}) must({"snapshot", store, name});
  EXPECT_EQ(names(store), "main\nc\na\nd\nb\nv1\n");
  const auto decided = must({"forget", store, "--keep-last", "2", "--dry-run", "--json"}).json();
  EXPECT_EQ(decided.at("kept")[0].at("name"), "c");
  EXPECT_EQ(decided.at("kept")[1].at("name"), "a");
  EXPECT_EQ(decided.at("removed")[0].at("name"), "d");
  must({"forget", store, "--keep-last", "1"});
  EXPECT_EQ(names(store), "main\nc\n");
}

// An order is not assigned twice, even if its snapshot and the order's file are removed.
TEST_F(Order, TheOrderContinuesAfterRemovalsAndWithoutItsFile) {
  const std::string store = make_store_with({noise(1, 1), noise(1, 2)});
  const auto order_of = [&](const char* name) {
    return must({"show", store, name, "--json"}).json().at("order").get<std::uint64_t>();
  };
  const std::uint64_t last = order_of("v2");
  must({"rm", store, "v2"});
  must({"snapshot", store, "x"});
  EXPECT_GT(order_of("x"), last);
  for (const char* damage : {"", "something else"}) {
    const std::uint64_t before = order_of("x");
    write_file(store + "/snapshots.order", damage);
    must({"rm", store, "v1"});
    must({"snapshot", store, "v1", "x"});
    EXPECT_GT(order_of("v1"), before);
  }
  std::filesystem::remove(store + "/snapshots.order");
  must({"snapshot", store, "y"});
  EXPECT_GT(order_of("y"), order_of("v1"));
  must({"verify", store, "--read-data"});
}

// The snapshot of an old version is created now.
TEST_F(Order, ASnapshotOfAnOldVersionIsTheNewest) {
  const std::string store = make_store_with({noise(1, 1), noise(1, 2)});
  must({"snapshot", store, "again", "v1"});
  EXPECT_EQ(names(store), "main\nagain\nv2\nv1\n");
  const auto again = must({"show", store, "again", "--json"}).json();
  const auto v1 = must({"show", store, "v1", "--json"}).json();
  EXPECT_EQ(again.at("time_ns"), v1.at("time_ns"));
  EXPECT_GT(again.at("created_ns"), v1.at("created_ns"));
}

// repair keeps the orders, and continues after them.
TEST_F(Order, RepairKeepsTheOrder) {
  const std::string store = make_store_with({noise(1, 1), noise(1, 2), noise(1, 3)});
  must({"rm", store, "v1"});
  const std::string saved = path("saved");
  must({"repair", store, "--to", saved});
  EXPECT_EQ(names(saved), "main\nv3\nv2\n");
  must({"snapshot", saved, "a"});
  EXPECT_EQ(names(saved), "main\na\nv3\nv2\n");
}

}  // namespace
}  // namespace vellum::cli_test
