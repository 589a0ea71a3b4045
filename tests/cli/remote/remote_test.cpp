// vellum remote, push, pull and clone, and the other commands at a remote.
#include <vellum/store.hpp>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class Remotes : public CliTest {
 protected:
  // A store with two versions and an empty remote.
  std::string with_remote() const {
    const std::string store = make_store_with({noise(100, 1), noise(100, 2)});
    must({"remote", "add", store, "origin", url()});
    return store;
  }
  std::string url() const { return "file://" + path("remote"); }
};

TEST_F(Remotes, AnEmptyRemoteIsProbedAndListed) {
  const std::string s = make_store_with({noise(1, 1)});
  const auto added = must({"remote", "add", s, "origin", url(), "--json"}).json();
  EXPECT_EQ(added.at("one_creator_wins"), true);
  EXPECT_EQ(added.at("one_writer"), false);
  const auto list = must({"remote", "list", s, "--json"}).json().at("remotes");
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].at("url"), url());
  EXPECT_TRUE(contains(must({"remote", "list", s}).out, url()));
  expect_failure({"remote", "add", s, "origin", url()}, 4, "already_exists", "origin");
  must({"remote", "remove", s, "origin"});
  expect_failure({"remote", "remove", s, "origin"}, 3, "not_found", "origin");
  EXPECT_EQ(must({"remote", "list", s}).out, "");
  EXPECT_FALSE(fs::exists(path("remote/probe")) && !fs::is_empty(path("remote/probe")));
}

TEST_F(Remotes, PushedVersionsAreClonedUnchanged) {
  const std::string s = with_remote(), copy = path("copy");
  const auto pushed = must({"push", s, "--all", "--json"}).json();
  EXPECT_EQ(pushed.at("versions").size(), 3u);
  EXPECT_GT(pushed.at("bytes_uploaded"), 100 * 4096);
  EXPECT_EQ(must({"push", s, "--all", "--json"}).json().at("bytes_uploaded"), 0);
  EXPECT_EQ(must({"log", url(), "--names"}).out, must({"log", s, "--names"}).out);
  EXPECT_EQ(must({"log", url(), "--json"}).json().at("versions")[2].at("message"),
            must({"log", s, "--json"}).json().at("versions")[2].at("message"));
  const auto cloned = must({"clone", url(), copy, "--json"}).json();
  EXPECT_EQ(cloned.at("versions").size(), 3u);
  EXPECT_EQ(must({"cat", copy, "v1"}).out, noise(100, 1));
  EXPECT_EQ(must({"cat", copy, "main"}).out, noise(100, 2));
  must({"verify", copy, "--read-data"});
  EXPECT_EQ(must({"remote", "list", copy, "--json"}).json().at("remotes")[0].at("name"), "origin");
  must({"import", s, "main", file("f", noise(100, 3)), "--snapshot", "v3"});
  must({"push", s, "main", "v3"});
  EXPECT_EQ(must({"pull", copy, "--json"}).json().at("versions").size(), 4u);
  EXPECT_EQ(must({"cat", copy, "v3"}).out, noise(100, 3));
  EXPECT_EQ(must({"cat", copy, "main"}).out, noise(100, 3));
}

TEST_F(Remotes, LogStatForgetAndGcWorkOnAUrl) {
  const std::string s = with_remote();
  must({"push", s, "--all"});
  EXPECT_EQ(must({"stat", url(), "--json"}).json().at("snapshots"), 2);
  EXPECT_EQ(must({"verify", url(), "--read-data", "--json"}).json().at("ok"), true);
  EXPECT_EQ(must({"forget", url(), "--keep-last", "1", "--json"}).json().at("removed").size(), 1u);
  EXPECT_EQ(must({"log", url(), "--names"}).out, "main\nv2\n");
  EXPECT_GT(must({"gc", url(), "--dry-run", "--json"}).json().at("bytes_removed"), 0);
  EXPECT_GT(must({"gc", url(), "--json"}).json().at("bytes_removed"), 0);
  EXPECT_EQ(must({"gc", url(), "--json"}).json().at("bytes_removed"), 0);
  expect_failure({"rm", url(), "main"}, 2, "invalid_argument", "main");
  must({"rm", url(), "--branch", "main"});
  EXPECT_EQ(must({"log", url(), "--names"}).out, "v2\n");
  must({"clone", url(), path("copy")});
  EXPECT_EQ(must({"cat", path("copy"), "v2"}).out, noise(100, 2));
}

TEST_F(Remotes, VersionsAreReadWithoutAClone) {
  const std::string s = with_remote();
  must({"push", s, "--all"});
  ASSERT_EQ(setenv("VELLUM_CACHE_DIR", path("cache").c_str(), 1), 0);
  fs::remove_all(s);
  EXPECT_EQ(must({"cat", url(), "v1"}).out, noise(100, 1));
  EXPECT_EQ(must({"cat", url(), "main", "--offset", "4096", "--length", "10"}).out,
            noise(100, 2).substr(4096, 10));
  EXPECT_EQ(must({"diff", url(), "v1", "v2", "--json"}).json().at("pages_different"), 100);
  EXPECT_EQ(must({"show", url(), "v2", "--json"}).json().at("branch"), "main");
  must({"export", url(), "v2", path("out")});
  EXPECT_EQ(read_file(path("out")), noise(100, 2));
  EXPECT_FALSE(fs::is_empty(path("cache/pieces")));
  expect_failure({"snapshot", url(), "x", "main"}, 8, "read_only", "clone");
  expect_failure({"cat", url(), "none"}, 3, "not_found", "none");
  expect_failure({"cat", "file://" + path("nowhere"), "v1"}, 3, "not_found", "no remote");
  fs::remove_all(path("cache"));
  fs::remove_all(path("remote/pieces"));
  expect_failure({"cat", url(), "v1"}, 11, "corrupted", "missing at the remote");
  ASSERT_EQ(unsetenv("VELLUM_CACHE_DIR"), 0);
}

TEST_F(Remotes, DamageAtTheRemoteIsNamed) {
  const std::string s = with_remote();
  must({"push", s, "--all"});
  std::string largest;
  for (const auto& entry : fs::directory_iterator(path("remote/pieces"))) {
    if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
  }
  std::string content = read_file(largest);
  content[content.size() - 100] ^= 1;
  write_file(largest, content);
  const std::string name = fs::path(largest).filename().string();
  expect_failure({"verify", url(), "--read-data"}, 11, "corrupted", "1 corrupted object");
  EXPECT_TRUE(contains(run({"verify", url(), "--read-data"}).out, name));
  expect_failure({"clone", url(), path("copy")}, 11, "corrupted", name);
  EXPECT_FALSE(fs::exists(path("copy")));
}

TEST_F(Remotes, ErrorsAreReported) {
  const std::string s = with_remote();
  const std::string code = "invalid_argument";
  expect_failure({"push", s}, 2, code, "--all");
  expect_failure({"push", s, "v1", "--all"}, 2, code, "--all");
  expect_failure({"push", s, "v1", "--remote", "other"}, 3, "not_found", "other");
  expect_failure({"push", s, "v9"}, 3, "not_found", "v9");
  expect_failure({"pull", s, "v1"}, 3, "not_found", "v1");
  expect_failure({"clone", url(), path("copy"), "v1"}, 3, "not_found", "no remote");
  expect_failure({"log", url()}, 3, "not_found", "no remote");
  expect_failure({"clone", "ftp://x", path("copy")}, 2, code, "ftp://x");
  expect_failure({"remote", "add", s, "b", "s3://bucket?endpoint=http://u:p@h"}, 2, code,
                 "credentials");
  expect_failure({"remote", "add", s, "../b", url()}, 2, code, "../b");
  must({"push", s, "--all"});
  expect_failure({"clone", url(), s}, 4, "already_exists", s);
  const std::string other = path("other");
  must({"init", other});
  expect_failure({"remote", "add", other, "origin", url()}, 2, code, "another store");
}

}  // namespace
}  // namespace vellum::cli_test
