// Dry runs of push, pull and rm; limits of transfers; clones of a time.
#include <stdlib.h>

#include "run/run_lib.hpp"
#include "support/sanitizers.hpp"

namespace vellum::cli_test {
namespace {

class Transfers : public CliTest {
 protected:
  std::string with_remote() const {
    const std::string store = make_store_with({noise(100, 1), noise(100, 2)});
    must({"remote", "add", store, "origin", url()});
    return store;
  }
  std::string url() const { return "file://" + path("remote"); }
  std::string names_there() const { return must({"log", url(), "--names"}).out; }
};

TEST_F(Transfers, ADryRunOfAPushSendsNothingAndCountsWhatAPushSends) {
  const std::string s = with_remote();
  const auto dry = must({"push", s, "--all", "--dry-run", "--json"}).json();
  EXPECT_EQ(dry.at("dry_run"), true);
  EXPECT_EQ(dry.at("versions").size(), 3u);
  EXPECT_TRUE(contains(must({"push", s, "--all", "--dry-run"}).out, "would push 3 versions"));
  EXPECT_EQ(run({"log", url()}).status, 3);  // there is no remote yet
  const auto pushed = must({"push", s, "--all", "--json"}).json();
  EXPECT_EQ(pushed.at("dry_run"), false);
  for (const char* key : {"objects_uploaded", "bytes_uploaded"}) {
    EXPECT_GT(pushed.at(key), 0);
    EXPECT_EQ(dry.at(key), pushed.at(key)) << key;
  }
  // Only what the remote lacks counts.
  must({"import", s, "main", file("f", noise(10, 3))});
  const auto more = must({"push", s, "--all", "--dry-run", "--json"}).json();
  EXPECT_LT(more.at("bytes_uploaded"), 20 * 4096);
  EXPECT_EQ(must({"push", s, "--all", "--json"}).json().at("bytes_uploaded"),
            more.at("bytes_uploaded"));
  EXPECT_EQ(must({"push", s, "--all", "--dry-run", "--json"}).json().at("bytes_uploaded"), 0);
}

TEST_F(Transfers, ADryRunOfAPullFetchesNothingAndCountsWhatAPullFetches) {
  const std::string s = with_remote(), copy = path("copy");
  must({"push", s, "--all"});
  must({"clone", url(), copy, "v1"});
  const auto dry = must({"pull", copy, "--dry-run", "--json"}).json();
  EXPECT_EQ(dry.at("dry_run"), true);
  EXPECT_TRUE(contains(must({"pull", copy, "--dry-run"}).out, "would get 2 versions"));
  EXPECT_EQ(must({"log", copy, "--names"}).out, "v1\n");
  const auto pulled = must({"pull", copy, "--json"}).json();
  for (const char* key : {"pieces_read", "bytes_read"}) {
    EXPECT_GT(pulled.at(key), 0);
    EXPECT_EQ(dry.at(key), pulled.at(key)) << key;
  }
  EXPECT_EQ(must({"cat", copy, "main"}).out, noise(100, 2));
  EXPECT_EQ(must({"pull", copy, "--dry-run", "--json"}).json().at("bytes_read"), 0);
  EXPECT_EQ(run({"pull", copy, "--dry-run", "--packs"}).status, 2);
}

TEST_F(Transfers, ADryRunOfRmRemovesNothingAndCountsWhatGcFrees) {
  const std::string s = with_remote();
  must({"push", s, "--all"});
  const auto here = must({"rm", s, "v1", "--dry-run", "--json"}).json();
  EXPECT_GT(here.at("freeable_bytes"), 90 * 4096);
  EXPECT_EQ(here.at("freeable_objects"), nullptr);
  EXPECT_EQ(must({"log", s, "--names"}).out, "main\nv2\nv1\n");
  expect_failure({"rm", s, "main", "--dry-run"}, 2, "invalid_argument", "main");
  expect_failure({"rm", s, "none", "--dry-run"}, 3, "not_found", "none");
  const auto there = must({"rm", url(), "v1", "--dry-run", "--json"}).json();
  EXPECT_TRUE(contains(must({"rm", url(), "v1", "--dry-run"}).out, "would remove snapshot 'v1'"));
  EXPECT_EQ(names_there(), "main\nv2\nv1\n");
  expect_failure({"rm", url(), "main", "--dry-run"}, 2, "invalid_argument", "main");
  expect_failure({"rm", url(), "none", "--dry-run"}, 3, "not_found", "none");
  must({"gc", url()});
  must({"rm", url(), "v1"});
  EXPECT_EQ(names_there(), "main\nv2\n");
  const auto freed = must({"gc", url(), "--json"}).json();
  EXPECT_GT(freed.at("objects_removed"), 0);
  EXPECT_GE(freed.at("objects_removed"), there.at("freeable_objects"));
  EXPECT_GE(freed.at("bytes_removed"), there.at("freeable_bytes"));
  EXPECT_GT(there.at("freeable_bytes"), 90 * 4096);
}

TEST_F(Transfers, VerifyNamesTheVersionsThatAStoreCouldMend) {
  const std::string s = with_remote(), copy = path("copy");
  must({"push", s, "--all"});
  must({"clone", url(), copy, "v2"});
  const auto first = std::filesystem::directory_iterator(path("remote/pieces"));
  std::filesystem::remove(first->path());
  const auto damages = [&](const std::string& from) {
    return run({"verify", url(), "--from", from, "--json"}).json().at("damages");
  };
  ASSERT_EQ(damages(s).size(), 1u);
  EXPECT_EQ(damages(s)[0].at("from_has"), damages(s)[0].at("versions"));
  EXPECT_LE(damages(copy)[0].at("from_has").size(), 1u);
  EXPECT_FALSE(run({"verify", url(), "--json"}).json().at("damages")[0].contains("from_has"));
  EXPECT_TRUE(contains(run({"verify", url(), "--from", s}).out, s + "  has "));
  must({"init", path("other")});
  expect_failure({"verify", url(), "--from", path("other")}, 2, "invalid_argument", "other");
  expect_failure({"verify", s, "--from", copy}, 2, "invalid_argument", "--from");
  must({"repair", url(), "--from", s});
  must({"verify", url(), "--from", s});
}

TEST_F(Transfers, LimitsHoldAndBadOnesAreRefused) {
  const std::string s = with_remote();
  const auto start = std::chrono::steady_clock::now();
  must({"push", s, "--all", "--limit-rate", "1M", "--connections", "1"});
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(700));
  must({"clone", url(), path("copy"), "--limit-rate", "100M", "--connections", "2"});
  must({"pull", path("copy"), "--limit-rate", "100M", "--connections", "2"});
  EXPECT_EQ(must({"cat", path("copy"), "v1"}).out, noise(100, 1));
  for (const std::string rate : {"0", "x", "5Q", "-1"}) {
    for (const Arguments& command : std::vector<Arguments>{{"push", s, "--all"},
                                                           {"pull", s},
                                                           {"clone", url(), path("c")},
                                                           {"replicate", s, url()}}) {
      Arguments arguments = command;
      arguments.push_back("--limit-rate=" + rate);
      expect_failure(arguments, 2, "invalid_argument", "--limit-rate");
    }
  }
  for (const char* number : {"0", "257", "x"}) {
    expect_failure({"push", s, "--all", "--connections", number}, 2, "invalid_argument",
                   "--connections");
  }
  EXPECT_FALSE(std::filesystem::exists(path("c")));
}

TEST_F(Transfers, ACloneOfATimeHasTheNewestSnapshotOfThatTimeNoSanitizer) {
  const std::string s = path("s");
  must({"init", s});
  must({"remote", "add", s, "origin", url()});
  const auto import = [&](const char* name, unsigned seed, const char* seconds_ago) {
    const Result result =
        run({"import", s, "main", file("f", noise(5, seed)), "--snapshot", name}, [&] {
          ::setenv("LD_PRELOAD", VELLUM_CLOCK_BACK, 1);
          ::setenv("VELLUM_TEST_CLOCK_BACK", seconds_ago, 1);
        });
    ASSERT_EQ(result.status, 0) << result.err;
  };
  import("old", 1, "864000");
  import("older", 2, "432000");
  import("new", 3, "0");
  must({"push", s, "--all"});
  must({"clone", url(), path("c"), "@{3 days ago}"});
  EXPECT_EQ(must({"log", path("c"), "--names"}).out, "older\n");
  EXPECT_EQ(must({"cat", path("c"), "older"}).out, noise(5, 2));
  must({"clone", url(), path("d"), "@{2099-01-01}"});
  EXPECT_EQ(must({"log", path("d"), "--names"}).out, "new\n");
  expect_failure({"clone", url(), path("e"), "@{2001-01-01}"}, 3, "not_found", "2001-01-01");
  expect_failure({"clone", url(), path("e"), "@{soon}"}, 2, "invalid_argument", "soon");
  EXPECT_FALSE(std::filesystem::exists(path("e")));
}

TEST_F(Transfers, ADirectoryHasNoEarlierStateAndNoLock) {
  const std::string s = path("s"), when = "2026-11-24 10:30";
  must({"init", s});
  expect_failure({"remote", "add", s, "locked", url(), "--lock", "30d"}, 12, "unsupported",
                 "Object Lock");
  EXPECT_EQ(run({"remote", "add", s, "locked", url(), "--lock", "30"}).status, 2);
  must({"remote", "add", s, "origin", url()});
  EXPECT_EQ(must({"remote", "list", s, "--json"}).json().at("remotes")[0].at("lock_s"), 0);
  must({"import", s, "main", file("f", noise(5, 1)), "--snapshot", "one"});
  must({"push", s, "--all"});
  for (const char* command : {"log", "verify"}) {
    expect_failure({command, url(), "--at", when}, 12, "unsupported", "earlier");
    expect_failure({command, url(), "--at", "soon"}, 2, "invalid_argument", "soon");
    expect_failure({command, s, "--at", when}, 2, "invalid_argument", "not for a store");
  }
  expect_failure({"clone", url(), path("c"), "--at", when}, 12, "unsupported", "earlier");
  expect_failure({"clone", url(), path("c"), "--at", "soon"}, 2, "invalid_argument", "soon");
  EXPECT_EQ(run({"clone", url(), path("c"), "--lazy", "--at", when}).status, 2);
  EXPECT_FALSE(std::filesystem::exists(path("c")));
}

}  // namespace
}  // namespace vellum::cli_test
