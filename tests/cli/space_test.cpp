// vellum gc, forget, and the space in stat.
#include <chrono>
#include <thread>

#include <signal.h>
#include <sys/stat.h>

#include <vellum/store.hpp>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

using Names = std::vector<std::string>;

Names names_of_list(const nlohmann::json& list) {
  Names names;
  for (const auto& line : list) {
    names.push_back(line.at("name"));
  }
  return names;
}

class Space : public CliTest {
 protected:
  // v1, v2 and v3 differ in all of their 64 pages.
  std::string three() const { return make_store_with({noise(64, 1), noise(64, 2), noise(64, 3)}); }
};

TEST_F(Space, GcFreesWhatRmRemoved) {
  const std::string s = three();
  must({"rm", s, "v1", "v2"});
  const auto look = must({"gc", s, "--dry-run", "--json"}).json();
  EXPECT_GE(look.at("freeable_bytes"), 125 * 4096);  // whole blocks only
  EXPECT_EQ(look.at("freed_bytes"), 0);
  EXPECT_TRUE(contains(must({"gc", s, "--dry-run"}).out, "would free"));
  const auto done = must({"gc", s, "--json"}).json();
  EXPECT_EQ(done.at("freeable_bytes"), look.at("freeable_bytes"));
  // A file with more extents may need a block of the file system for their list, which counts as
  // part of the file.
  EXPECT_LE(done.at("freed_bytes"), look.at("freeable_bytes"));
  EXPECT_GE(done.at("freed_bytes").get<std::uint64_t>() + 4096,
            look.at("freeable_bytes").get<std::uint64_t>());
  EXPECT_EQ(done.at("snapshots"), 1);
  EXPECT_EQ(done.at("branches"), 1);
  EXPECT_EQ(must({"cat", s, "v3"}).out, noise(64, 3));
  must({"verify", s, "--read-data"});
  EXPECT_TRUE(contains(must({"gc", s}).out, "freed 0 B of")) << must({"gc", s}).out;
  EXPECT_EQ(must({"gc", s, "--quiet"}).out, "");
}

TEST_F(Space, StatPrintsTheBytesThatEachVersionWouldFree) {
  const std::string s = three();
  auto stat = must({"stat", s, "--json"}).json();
  for (const auto& version : stat.at("versions")) {
    const std::uint64_t unique = version.at("unique_bytes"), shared = version.at("shared_bytes");
    const bool alone = version.at("name") == "v1" || version.at("name") == "v2";
    EXPECT_EQ(unique > 64 * 4096, alone) << version;  // v3 is main's head as well
    EXPECT_EQ(shared > 64 * 4096, !alone) << version;
  }
  EXPECT_LT(stat.at("pack_freeable_bytes"), 8192);
  EXPECT_GE(stat.at("pack_needed_bytes"), 192 * 4096);
  must({"rm", s, "v2"});
  stat = must({"stat", s, "--json"}).json();
  EXPECT_GE(stat.at("pack_freeable_bytes"), 62 * 4096);
  EXPECT_TRUE(contains(must({"stat", s}).out, "gc would free"));
  EXPECT_TRUE(contains(must({"stat", s}).out, "unique"));
}

TEST_F(Space, ForgetKeepsTheSnapshotsOfItsRules) {
  const std::string s = three();
  const auto look = must({"forget", s, "--keep-last", "2", "--dry-run", "--json"}).json();
  EXPECT_EQ(names_of_list(look.at("kept")), (Names{"v3", "v2"}));
  EXPECT_EQ(names_of_list(look.at("removed")), Names{"v1"});
  EXPECT_EQ(Store::open(s).versions().size(), 4u);
  // All of one day.
  const auto done = must({"forget", s, "--keep-daily", "7", "--keep-yearly", "1", "--json"}).json();
  EXPECT_EQ(names_of_list(done.at("kept")), Names{"v3"});
  EXPECT_EQ(done.at("kept")[0].at("kept_by"), (Names{"daily", "yearly"}));
  EXPECT_EQ(names_of_list(done.at("removed")), (Names{"v2", "v1"}));
  EXPECT_EQ(must({"snapshot", s, "--names"}).out, "v3\n");
  EXPECT_EQ(must({"branch", s, "--names"}).out, "main\n");
}

TEST_F(Space, ForgetConsidersOnlyTheSelectedSnapshots) {
  const std::string s = three();
  must({"snapshot", s, "nightly-1", "v1"});
  must({"snapshot", s, "nightly-2", "v2"});
  const std::string text = must({"forget", s, "--keep-last", "1", "--prefix", "nightly-"}).out;
  EXPECT_TRUE(contains(text, "removed 1 snapshot, kept 1")) << text;
  EXPECT_EQ(Store::open(s).versions().size(), 5u);
  must({"branch", s, "other", "v1"});
  must({"forget", s, "--keep-last", "1", "--branch", "other"});
  must({"rm", s, "--branch", "other"});
  EXPECT_EQ(Store::open(s).versions().size(), 5u);
  EXPECT_EQ(must({"forget", s, "--keep-last", "1", "--branch", "main", "--quiet"}).out, "");
  EXPECT_EQ(Store::open(s).versions().size(), 2u);
}

TEST_F(Space, ForgetNeedsARule) {
  const std::string s = three();
  expect_failure({"forget", s}, 2, "invalid_argument", "rule");
  expect_failure({"forget", s, "--keep-last", "0"}, 2, "invalid_argument", "rule");
  expect_failure({"forget", s, "--keep-last", "-1"}, 2, "invalid_argument", "keep-last");
  EXPECT_EQ(Store::open(s).versions().size(), 4u);
}

// Bytes that compress differently at different levels.
std::string letters(std::size_t pages, unsigned seed) {
  const std::string choices = noise(pages, seed);
  std::string out;
  while (out.size() < choices.size()) {
    const auto byte = static_cast<unsigned char>(choices[out.size()]);
    if (out.size() > 320 && byte % 3 != 0) {
      out += out.substr(out.size() - 50 - byte, 8 + byte % 32);
    } else {
      out += static_cast<char>('a' + byte % 26);
    }
  }
  return out.substr(0, choices.size());
}

TEST_F(Space, GcRecompresses) {
  const std::string s =
      make_store_with({letters(2048, 1), letters(2048, 2)}, {"--pack-size", "1M"});
  const auto look = must({"gc", s, "--dry-run", "--recompress=12", "--json"}).json();
  ASSERT_GT(look.at("packs_recompressed"), 1);
  const auto done = must({"gc", s, "--recompress=12", "--json"}).json();
  EXPECT_EQ(done.at("packs_recompressed"), look.at("packs_recompressed"));
  EXPECT_EQ(done.at("recompressed_from_bytes"), look.at("recompressed_from_bytes"));
  EXPECT_LT(done.at("recompressed_to_bytes"), done.at("recompressed_from_bytes"));
  EXPECT_EQ(must({"cat", s, "v1"}).out, letters(2048, 1));
  EXPECT_EQ(must({"cat", s, "v2"}).out, letters(2048, 2));
  must({"verify", s, "--read-data"});
  const std::string again = must({"gc", s, "--recompress=12"}).out;
  EXPECT_TRUE(contains(again, "; recompressed 0 packs")) << again;
  must({"gc", "--recompress", s});  // 15: the store's path is not a level
}

// Packs get other files while a process has them open; versions that it opens then are pinned in
// those.
TEST_F(Space, AVersionOpenedAfterRecompressionKeepsItsData) {
  const std::string s =
      make_store_with({letters(2048, 1), letters(2048, 2)}, {"--pack-size", "1M"});
  {
    Store store = Store::open(s);
    (void)store.open_version("v2");  // the packs are open now
    ASSERT_GT(must({"gc", s, "--recompress=6", "--json"}).json().at("packs_recompressed"), 1);
    const Region open = store.open_version("v1");
    must({"rm", s, "v1", "v2"});
    must({"rm", s, "--branch", "main"});
    EXPECT_EQ(must({"gc", s, "--recompress=9", "--json"}).json().at("open_versions"), 1);
    EXPECT_EQ(std::string(static_cast<const char*>(open.data()), open.size_bytes()),
              letters(2048, 1));
  }
  EXPECT_EQ(must({"gc", s, "--json"}).json().at("open_versions"), 0);
}

TEST_F(Space, GcRefusesInvalidLevels) {
  const std::string s = three();
  for (const char* level : {"0", "20", "-1", "x", "15x"}) {
    expect_failure({"gc", s, std::string("--recompress=") + level}, 2, "invalid_argument",
                   "--recompress");
  }
}

// An open version in this process; gc in another one.
TEST_F(Space, AnOpenVersionKeepsItsData) {
  const std::string s = three();
  {
    Store store = Store::open(s);
    const Region open = store.open_version("v1");
    store.remove_snapshot("v1");
    const auto report = must({"gc", s, "--json"}).json();
    EXPECT_EQ(report.at("open_versions"), 1);
    EXPECT_LT(report.at("freed_bytes"), 64 * 4096);
    EXPECT_EQ(std::string(static_cast<const char*>(open.data()), open.size_bytes()), noise(64, 1));
  }
  EXPECT_GE(must({"gc", s, "--json"}).json().at("freed_bytes"), 62 * 4096);
}

TEST_F(Space, GcNamesTheDamageThatStopsIt) {
  const std::string s = three();
  const std::string ref = s + "/snapshots/v2.ref";
  write_file(ref, read_file(ref).substr(0, 60));
  expect_failure({"gc", s}, 11, "corrupted", "v2.ref");
}

// A program that writes the same MiB repeatedly. Returns the size of the packs afterwards.
class SpaceOfRunNoSanitizer : public Space {
 protected:
  std::uint64_t packs_after_rewrites(const std::string& name, const Arguments& options) const {
    const std::string store = path(name), data = file(name + ".db", "");
    Arguments arguments = {"run", "--store", store, "--file", data};
    arguments.insert(arguments.end(), options.begin(), options.end());
    for (const std::string& word : {std::string("--"), std::string("python3"), std::string("-c"),
                                    std::string("import os, sys\n"
                                                "f = os.open(sys.argv[1], os.O_RDWR)\n"
                                                "for i in range(128):\n"
                                                "    os.pwrite(f, os.urandom(1 << 20), 0)\n"
                                                "    os.fsync(f)\n"),
                                    data}) {
      arguments.push_back(word);
    }
    must(arguments);
    EXPECT_EQ(must({"cat", store, "main"}).out, read_file(data));
    // On the medium: holes do not count.
    std::uint64_t blocks = 0;
    for (const auto& pack : std::filesystem::directory_iterator(store + "/packs")) {
      struct stat status{};
      EXPECT_EQ(::stat(pack.path().c_str(), &status), 0) << pack.path();
      blocks += static_cast<std::uint64_t>(status.st_blocks);
    }
    return blocks * 512;
  }
};

TEST_F(SpaceOfRunNoSanitizer, SpaceIsFreedUnlessGcIsSwitchedOff) {
  const std::uint64_t without = packs_after_rewrites("without", {"--no-gc"});
  EXPECT_GE(without, 120u << 20);
  EXPECT_LE(packs_after_rewrites("with", {}), 66u << 20);
}

}  // namespace
}  // namespace vellum::cli_test
