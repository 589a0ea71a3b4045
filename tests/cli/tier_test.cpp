// vellum tier: archives and caches, and their loss.
#include <vellum/store.hpp>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class Tiers : public CliTest {
 protected:
  // Four versions of 1.2 MiB, in packs of 1 MiB.
  std::string four() const {
    return make_store_with({noise(300, 1), noise(300, 2), noise(300, 3), noise(300, 4)},
                           {"--pack-size", "1M"});
  }
  static std::size_t files_in(const std::string& directory) {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
  }
  static nlohmann::json tier(const std::string& store, std::size_t place) {
    return must({"tier", "list", store, "--json"}).json().at("tiers").at(place);
  }
  void expect_all(const std::string& s) const {
    for (unsigned i = 1; i <= 4; ++i) {
      EXPECT_EQ(must({"cat", s, "v" + std::to_string(i)}).out, noise(300, i));
    }
    must({"verify", s, "--read-data"});
  }
};

TEST_F(Tiers, APolicyMovesColdPacks) {
  const std::string s = four(), archive = path("hdd");
  must({"tier", "add", s, "archive", archive});
  EXPECT_EQ(tier(s, 1).at("kind"), "archive");
  EXPECT_EQ(tier(s, 1).at("present"), true);
  EXPECT_EQ(must({"tier", "apply", s, "--json"}).json().at("packs_moved"), 0);
  must({"tier", "limit", s, "home", "2M"});
  EXPECT_EQ(tier(s, 0).at("limit_bytes"), 2 << 20);
  const auto look = must({"tier", "apply", s, "--dry-run", "--json"}).json();
  EXPECT_EQ(tier(s, 1).at("packs"), 0);
  const auto done = must({"tier", "apply", s, "--json"}).json();
  EXPECT_EQ(look.at("packs_moved"), done.at("packs_moved"));
  EXPECT_GE(done.at("packs_moved"), 2);
  EXPECT_LE(done.at("home_bytes"), 2 << 20);
  EXPECT_EQ(tier(s, 0).at("bytes"), done.at("home_bytes"));
  EXPECT_EQ(tier(s, 1).at("packs"), done.at("packs_moved"));
  const auto stat = must({"stat", s, "--json"}).json();
  EXPECT_EQ(stat.at("archive_packs"), done.at("packs_moved"));
  EXPECT_TRUE(contains(must({"stat", s}).out, "archived"));
  EXPECT_TRUE(contains(must({"tier", "list", s}).out, archive));
  expect_all(s);
  must({"tier", "limit", s, "home", "none"});
  expect_failure({"tier", "remove", s, archive}, 7, "busy", archive);
  EXPECT_TRUE(contains(must({"tier", "move", s, "archive", "--keep-last", "1"}).out, "moved"));
  must({"tier", "remove", s, archive, "--bring-home"});
  EXPECT_EQ(files_in(archive), 0u);
  expect_all(s);
}

TEST_F(Tiers, AnAbsentArchiveIsNamed) {
  const std::string s = four(), archive = path("hdd");
  must({"tier", "add", s, "archive", archive});
  must({"tier", "move", s, "archive"});
  fs::rename(archive, path("unplugged"));
  expect_failure({"cat", s, "v1"}, 10, "io", archive);
  expect_failure({"gc", s}, 10, "io", archive);
  expect_failure({"tier", "move", s, "home"}, 10, "io", archive);
  EXPECT_EQ(run({"verify", s}).status, 11);
  EXPECT_TRUE(contains(must({"tier", "list", s}).out, "absent"));
  must({"tier", "add", s, "archive", path("unplugged")});
  expect_all(s);
  must({"gc", s, "--recompress"});
  expect_all(s);
}

TEST_F(Tiers, LosingACacheLosesNoData) {
  const std::string s = four(), cache = path("nvme");
  must({"tier", "add", s, "cache", cache, "--bytes", "2M"});
  const auto done = must({"tier", "apply", s, "--json"}).json();
  EXPECT_GE(done.at("copies_made"), 1);
  EXPECT_LE(tier(s, 1).at("bytes"), 2 << 20);
  EXPECT_EQ(must({"stat", s, "--json"}).json().at("cache_copies"), done.at("copies_made"));
  EXPECT_TRUE(contains(must({"stat", s}).out, "caches"));
  expect_all(s);
  for (const auto& file : fs::directory_iterator(cache)) fs::resize_file(file.path(), 5000);
  expect_all(s);
  fs::remove_all(cache);
  expect_all(s);
  must({"gc", s});
  must({"tier", "apply", s});
  must({"tier", "add", s, "cache", cache});
  must({"tier", "limit", s, cache, "8M"});
  EXPECT_TRUE(contains(must({"tier", "apply", s}).out, "copied"));
  EXPECT_EQ(tier(s, 1).at("limit_bytes"), 8 << 20);
  expect_all(s);
  must({"tier", "remove", s, cache});
  EXPECT_EQ(must({"tier", "list", s, "--json"}).json().at("tiers").size(), 1u);
}

TEST_F(Tiers, InvalidTierCommandsAreRefused) {
  const std::string s = four();
  expect_failure({"tier", "move", s, "archive"}, 3, "not_found", "archive");
  expect_failure({"tier", "remove", s, "/no/such"}, 3, "not_found", "/no/such");
  expect_failure({"tier", "add", s, "archive", directory_.string()}, 4, "already_exists",
                 directory_.string());
  expect_failure({"tier", "add", s, "archive", path("a"), "--bytes", "1M"}, 2, "invalid_argument",
                 "--bytes");
  expect_failure({"tier", "limit", s, "home", "much"}, 2, "invalid_argument", "much");
  expect_failure({"tier", "move", s, "home", "--keep-last", "2"}, 2, "invalid_argument",
                 "--keep-last");
  for (const Arguments& wrong :
       {Arguments{"tier"}, {"tier", s}, {"tier", "add", s}, {"tier", "move", s, "nowhere"}}) {
    EXPECT_EQ(run(wrong).status, 2);
  }
}

}  // namespace
}  // namespace vellum::cli_test
