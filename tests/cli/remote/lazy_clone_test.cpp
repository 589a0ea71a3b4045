// vellum clone --lazy, and every command in the new store. The remote is a directory, or a real S3
// server (tools/with-s3.sh).
#include <optional>
#include <vellum/store.hpp>

#include "cli/remote/lazy_clone_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class LazyClone : public AtEachRemote<CliTest> {
 protected:
  bool has_packs() const { return !fs::is_empty(clone + "/packs"); }
};

TEST_P(LazyClone, EachReadingCommandPrintsTheSameAsForTheSource) {
  const std::vector<Arguments> commands = {
      {"log", "STORE", "--names"},
      {"ls", "STORE", "v1"},
      {"show", "STORE", "v2"},
      {"cat", "STORE", "v1"},
      {"cat", "STORE", "main", "--offset", "4090", "--length", "100"},
      {"diff", "STORE", "v1", "v2"},
      {"diff", "STORE", "v1", "main", "--json"},
      {"blame", "STORE", "main"},
  };
  for (const Arguments& command : commands) {
    const auto said = [&](const std::string& store) {
      Arguments arguments = command;
      arguments[1] = store;
      std::string out = must(arguments).out;
      for (std::size_t at; (at = out.find(store)) != std::string::npos;) {
        out.replace(at, store.size(), "STORE");
      }
      return out;
    };
    EXPECT_TRUE(said(clone) == said(source)) << command[0] << ":\n" << said(clone).substr(0, 4000);
  }
  for (const std::string name : {"v1", "v2", "main"}) {
    must({"export", clone, name, path("exported-" + name)});
    EXPECT_TRUE(read_file(path("exported-" + name)) == must({"cat", source, name}).out) << name;
  }
  must({"verify", clone, "--read-data"});
  EXPECT_FALSE(has_packs());
  EXPECT_FALSE(fs::is_empty(path("cache/pieces")));
}

TEST_P(LazyClone, DuCountsTheBytesOfVersionsAndDoesNotSplitRemotePacks) {
  const auto here = must({"du", clone, "--json"}).json();
  EXPECT_EQ(here.at("versions"), must({"du", source, "--json"}).json().at("versions"));
  EXPECT_EQ(here.at("pack_bytes"), 0);
  for (const std::string part : {"one", "several", "none"}) {
    EXPECT_TRUE(here.at("needed_by_" + part + "_bytes").is_null()) << part;
  }
  EXPECT_TRUE(
      contains(must({"du", clone}).out, "0 B in local packs; the others are at the remote"));
  must({"pull", clone, "--packs"});
  EXPECT_FALSE(must({"du", clone, "--json"}).json().at("needed_by_several_bytes").is_null());
}

TEST_P(LazyClone, EachWritingCommandKeepsTheRemotePacks) {
  must({"snapshot", clone, "kept", "v1"});
  must({"branch", clone, "side", "v1"});
  must({"import", clone, "side", file("f", noise(60, 3)), "--snapshot", "v3"});
  must({"rm", clone, "v2"});
  must({"gc", clone});
  EXPECT_TRUE(must({"cat", clone, "kept"}).out == noise(100, 1));
  EXPECT_TRUE(must({"cat", clone, "v3"}).out == noise(60, 3));
  EXPECT_TRUE(must({"cat", clone, "main"}).out == noise(100, 2));
  must({"push", clone, "side", "v3", "kept"});
  must({"clone", url, path("full")});
  EXPECT_TRUE(must({"cat", path("full"), "kept"}).out == noise(100, 1));
  EXPECT_TRUE(must({"cat", path("full"), "side"}).out == noise(60, 3));
  expect_failure({"repair", clone}, 12, "unsupported", "pull --packs");
}

TEST_P(LazyClone, ACloneIsCompleteWithoutTheRemoteOnceItsPacksAreFetched) {
  must({"import", source, "main", file("f", noise(100, 4)), "--snapshot", "v4"});
  must({"push", source, "main", "v4"});
  const auto holds = [&] { return must({"stat", url, "--json"}).json().at("holds").size(); };
  EXPECT_EQ(holds(), 1u);
  must({"rm", url, "v1"});
  must({"gc", url});
  must({"pull", clone});
  EXPECT_FALSE(has_packs());
  EXPECT_TRUE(must({"cat", clone, "main"}).out == noise(100, 4));
  EXPECT_TRUE(must({"cat", clone, "v1"}).out == noise(100, 1));
  must({"pull", clone, "--packs"});
  EXPECT_TRUE(has_packs());
  EXPECT_EQ(holds(), 1u);
  EXPECT_EQ(must({"pull", clone, "--packs", "--json"}).json().at("holds").size(), 1u);
  EXPECT_EQ(run({"pull", clone, "--release"}).status, 2);
  EXPECT_EQ(must({"pull", clone, "--packs", "--release", "--json"}).json().at("released").size(),
            1u);
  EXPECT_EQ(holds(), 0u);
  must({"rm", url, "v2", "v4"});
  must({"rm", url, "--branch", "main"});
  must({"gc", url});
  fs::remove_all(path("cache"));
  EXPECT_TRUE(must({"cat", clone, "v1"}).out == noise(100, 1));
  EXPECT_TRUE(must({"cat", clone, "v4"}).out == noise(100, 4));
  must({"verify", clone, "--read-data"});
}

TEST_P(LazyClone, AHoldThatCannotBeReleasedDoesNotHideWhatWasFetched) {
  must({"import", source, "main", file("f", noise(100, 4)), "--snapshot", "v4"});
  must({"push", source, "main", "v4"});
  must({"import", source, "main", file("f", noise(100, 5)), "--snapshot", "v5"});
  Store store = Store::open(clone);
  std::optional<Region> reader = store.open_version("v1");
  const auto refused = run({"pull", clone, "v4", "--packs", "--release"});
  EXPECT_TRUE(contains(refused.out, "got 1 version")) << refused.out;
  EXPECT_TRUE(contains(refused.err, "its hold stays there")) << refused.err;
  must({"push", source, "v5"});
  const auto in_json = run({"pull", clone, "v5", "--packs", "--release", "--json"});
  EXPECT_EQ(in_json.status, refused.status);
  EXPECT_EQ(in_json.json().at("versions").size(), 1u) << in_json.out;
  EXPECT_EQ(in_json.json().at("error").at("code"), "busy") << in_json.out;
  reader.reset();
  must({"pull", clone, "--packs", "--release"});
}

TEST_P(LazyClone, ACopyHasItsPiecesAfterTheOriginalHasFetchedItsPacks) {
  const std::string copy = path("copied");
  fs::copy(clone, copy, fs::copy_options::recursive);
  const std::string said = must({"pull", clone, "--packs"}).out;
  EXPECT_TRUE(contains(said, "stays at the remote, for copies of this store")) << said;
  must({"rm", url, "v1", "v2"});
  must({"rm", url, "--branch", "main"});
  must({"gc", url});
  EXPECT_TRUE(must({"cat", copy, "v1"}).out == noise(100, 1));
  must({"import", source, "main", file("f", noise(100, 5)), "--snapshot", "v5"});
  must({"push", source, "v5"});
  must({"pull", copy, "v5"});
  must({"pull", clone, "v5", "--packs", "--release"});
  must({"rm", url, "v5"});
  must({"gc", url});
  fs::remove_all(path("cache"));
  EXPECT_TRUE(must({"cat", copy, "v1"}).out == noise(100, 1));
  EXPECT_TRUE(must({"cat", copy, "v5"}).out == noise(100, 5));
  must({"pull", copy, "--packs", "--release"});
  EXPECT_EQ(must({"stat", url, "--json"}).json().at("holds").size(), 0u);
  must({"verify", copy, "--read-data"});
}

TEST_P(LazyClone, AnObjectThatTheRemoteHasLostIsNamed) {
  const auto holds = must({"stat", url, "--json"}).json().at("holds");
  ASSERT_EQ(holds.size(), 1u);
  must({"forget", url, "--hold", holds[0].at("hold")});
  must({"rm", url, "v1", "v2"});
  must({"rm", url, "--branch", "main"});
  must({"gc", url});
  expect_failure({"cat", clone, "v1"}, 11, "corrupted", "missing at the remote");
  EXPECT_EQ(must({"log", clone, "--names"}).out, must({"log", source, "--names"}).out);
}

INSTANTIATE_TEST_SUITE_P(At, LazyClone, testing::Bool(), [](const auto& of) {
  return std::string(of.param ? "Server" : "Directory");
});

}  // namespace
}  // namespace vellum::cli_test
