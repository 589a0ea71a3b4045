// Each command of `vellum`, as text and as JSON.
#include <cstring>

#include <vellum/store.hpp>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

using testing::Test;

constexpr std::size_t kPageOfFiles = 4096;

std::vector<std::string> names_in(const nlohmann::json& object) {
  std::vector<std::string> names;
  for (const auto& version : object.at("versions")) {
    names.push_back(version.at("name"));
  }
  return names;
}

using Names = std::vector<std::string>;

class Commands : public CliTest {};

TEST_F(Commands, InitCreatesAStoreWithTheDefaults) {
  const Result result = must({"init", path("s")});
  EXPECT_TRUE(contains(result.out, "created store " + path("s"))) << result.out;
  const StoreOptions defaults;
  const StoreOptions made = Store::open(path("s")).options();
  EXPECT_EQ(made.encoding.compression, defaults.encoding.compression);
  EXPECT_EQ(made.encoding.compression_level, defaults.encoding.compression_level);
  EXPECT_EQ(made.encoding.block_bytes, defaults.encoding.block_bytes);
  EXPECT_EQ(made.pack_bytes, defaults.pack_bytes);
}

TEST_F(Commands, InitSetsAHashAndVerifyChecksIt) {
  const auto object = must({"init", path("s"), "--hash", "sha256", "--json"}).json();
  EXPECT_EQ(object.at("hash"), "sha256");
  EXPECT_EQ(Store::open(path("s")).options().encoding.hash, Encoding::Hash::sha256);
  EXPECT_EQ(must({"stat", path("s"), "--json"}).json().at("hash"), "sha256");
  EXPECT_NE(must({"stat", path("s")}).out.find("zstd level 1, sha256"), std::string::npos);
  EXPECT_EQ(must({"init", path("t"), "--hash", "none", "--json"}).json().at("hash"), "none");
  EXPECT_EQ(run({"init", path("u"), "--hash", "md5"}).status, 2);
}

TEST_F(Commands, ABranchCanHaveItsOwnEncoding) {
  write_file(path("f"), "content");
  must({"init", path("s"), "--compression", "lz4", "--no-deltas"});
  must({"import", path("s"), "main", path("f")});
  EXPECT_TRUE(must({"show", path("s"), "main", "--json"}).json().at("encoding").is_null());
  const auto made = must({"branch", path("s"), "own", "main", "--compression", "zstd", "--level",
                          "3", "--no-dedup", "--hash", "sha256", "--json"})
                        .json()
                        .at("encoding");
  EXPECT_EQ(made.at("compression"), "zstd");
  EXPECT_EQ(made.at("compression_level"), 3);
  EXPECT_EQ(made.at("dedup"), false);
  EXPECT_EQ(made.at("deltas"), false);  // as the store
  EXPECT_EQ(made.at("hash"), "sha256");
  const auto child = must({"branch", path("s"), "child", "own", "--deltas", "--json"}).json();
  EXPECT_EQ(child.at("encoding").at("deltas"), true);
  EXPECT_EQ(child.at("encoding").at("hash"), "sha256");
  for (const auto& command : {Arguments{"branch", path("s")}, Arguments{"stat", path("s")},
                              Arguments{"show", path("s"), "own"}}) {
    EXPECT_NE(
        must(command).out.find("zstd level 3, sha256, blocks of 64.0 KiB, no dedup, no deltas"),
        std::string::npos)
        << must(command).out;
  }
  EXPECT_EQ(run({"branch", path("s"), "--no-dedup"}).status, 2);
  EXPECT_EQ(run({"branch", path("s"), "x", "main", "--block", "4M"}).status, 2);
  EXPECT_FALSE(Store::open(path("s")).contains("x"));
}

TEST_F(Commands, InitTakesOptionsWithUnits) {
  const auto object = must({"init", path("s"), "--compression", "zstd", "--level", "3", "--block",
                            "4KiB", "--pack-size", "1m", "--json"})
                          .json();
  EXPECT_EQ(object.at("compression"), "zstd");
  EXPECT_EQ(object.at("compression_level"), 3);
  EXPECT_EQ(object.at("block_bytes"), 4096);
  EXPECT_EQ(object.at("pack_bytes"), 1 << 20);
  EXPECT_EQ(object.at("id"), Store::open(path("s")).id());
  for (const char* codec : {"none", "lz4"}) {
    must({"init", path(codec), "--compression", codec});
    EXPECT_EQ(must({"--json", "stat", path(codec)}).json().at("compression"), codec);
  }
}

TEST_F(Commands, CatAndExportGiveTheImportedBytes) {
  const std::string content = noise(300, 1);
  const std::string store = make_store_with({content});
  for (const char* version : {"v1", "main"}) {
    EXPECT_EQ(must({"cat", store, version}).out, content) << version;
    must({"export", store, version, path(std::string("out-") + version)});
    EXPECT_EQ(read_file(path(std::string("out-") + version)), content) << version;
  }
}

TEST_F(Commands, ExportKeepsTheSizeOfTheImportedFile) {
  const std::string longer = noise(3, 1) + "odd", shorter = noise(1, 2).substr(0, 1001);
  const std::string store = make_store_with({longer, shorter, ""});
  const auto sizes = [&](const std::string& version) {
    const auto object = must({"show", store, version, "--json"}).json();
    return std::pair(object.at("region_bytes").get<std::uint64_t>(),
                     object.at("file_bytes").get<std::uint64_t>());
  };
  EXPECT_EQ(sizes("v1"), std::pair(4 * kPageOfFiles, 3 * kPageOfFiles + 3));
  EXPECT_EQ(sizes("v2"), std::pair(4 * kPageOfFiles, std::uint64_t{1001}));
  EXPECT_EQ(sizes("main"), std::pair(4 * kPageOfFiles, std::uint64_t{0}));
  EXPECT_EQ(must({"log", store, "--json"}).json().at("versions")[2].at("file_bytes"), 1001);
  EXPECT_EQ(must({"cat", store, "v1"}).out, longer);
  EXPECT_EQ(must({"cat", store, "v2"}).out, shorter);
  EXPECT_EQ(must({"cat", store, "main"}).out, "");
  expect_failure({"cat", store, "v2", "--offset", "1002"}, 2, "invalid_argument", "1001");
  must({"export", store, "v2", path("out")});
  EXPECT_EQ(read_file(path("out")), shorter);
  EXPECT_TRUE(contains(must({"show", store, "v2"}).out, "size     1001 B (1001 bytes)"));
  EXPECT_EQ(must({"diff", store, "v1", "v2", "--json"}).json().at("b_region_bytes"),
            4 * kPageOfFiles);
}

TEST_F(Commands, ImportReportsWhatChanged) {
  const std::string store = make_store();
  std::string content = noise(10, 1);
  const auto first =
      must({"--json", "import", store, "main", file("a", content), "-m", "first"}).json();
  EXPECT_EQ(first.at("branch"), "main");
  EXPECT_EQ(first.at("pages_changed"), 10);
  EXPECT_GT(first.at("bytes_written"), 0);
  EXPECT_TRUE(first.at("snapshot").is_null());
  content[5 * kPageOfFiles] ^= 1;
  const auto second = must({"--json", "import", store, "main", file("a", content)}).json();
  EXPECT_EQ(second.at("pages_changed"), 1);
  EXPECT_GT(second.at("sequence"), first.at("sequence"));
  const Result text = must({"import", store, "main", file("a", noise(10, 2))});
  EXPECT_TRUE(contains(text.out, "branch 'main' is at commit")) << text.out;
  EXPECT_TRUE(contains(text.out, "10 pages changed")) << text.out;
}

TEST_F(Commands, ImportFollowsALinkToTheFile) {
  const std::string store = make_store();
  file("target", noise(2, 1));
  std::filesystem::create_symlink("target", path("link"));
  must({"import", store, "main", path("link")});
  EXPECT_EQ(must({"cat", store, "main"}).out, noise(2, 1));
}

TEST_F(Commands, ImportOfASmallerFileZeroesTheRest) {
  const std::string store = make_store_with({noise(4, 1), noise(1, 2) + "tail"});
  EXPECT_EQ(must({"cat", store, "v2"}).out, noise(1, 2) + "tail");
  const auto totals = must({"diff", store, "v1", "v2", "--json"}).json();
  EXPECT_EQ(totals.at("b_region_bytes"), 4 * kPageOfFiles);
  EXPECT_EQ(totals.at("pages_different"), 4);
}

TEST_F(Commands, ImportWithSnapshotMakesItTheNextOnesParent) {
  const std::string store = make_store_with({noise(8, 1), noise(8, 2), noise(8, 3)});
  const auto show = [&](const std::string& name) {
    return must({"show", store, name, "--json"}).json();
  };
  EXPECT_TRUE(show("v1").at("parent").is_null());
  EXPECT_EQ(show("v2").at("parent"), "v1");
  EXPECT_EQ(show("v3").at("parent"), "v2");
  EXPECT_EQ(show("main").at("parent"), "v3");
  EXPECT_EQ(show("v3").at("pages_changed"), 8);
}

TEST_F(Commands, ImportDoesNothingIfTheSnapshotCannotBeCreated) {
  const std::string store = make_store_with({noise(2, 1)});
  const std::string other = file("other", noise(2, 9));
  expect_failure({"import", store, "main", other, "--snapshot", "v1"}, 4, "already_exists", "v1");
  expect_failure({"import", store, "main", other, "--snapshot", "main"}, 2, "invalid_argument",
                 "both called 'main'");
  expect_failure({"import", store, "main", other, "--snapshot", "a/b"}, 2, "invalid_argument",
                 "a/b");
  expect_failure({"import", store, "new", other, "--snapshot", "new"}, 2, "invalid_argument",
                 "both called 'new'");
  EXPECT_EQ(must({"cat", store, "main"}).out, noise(2, 1));
  EXPECT_EQ(must({"branch", store, "--names"}).out, "main\n");
}

TEST_F(Commands, AttachRecordsAPlainFileAgainAndAgain) {
  const std::string store = make_store();
  std::string content = noise(10, 1) + "tail";
  file("db", content);
  const auto first = must({"--json", "attach", store, "db", path("db"), "-m", "first"}).json();
  EXPECT_EQ(first.at("pages_changed"), 11);
  EXPECT_TRUE(first.at("snapshot").is_null());
  const auto second = must({"--json", "attach", store, "db", path("db")}).json();
  EXPECT_EQ(second.at("pages_changed"), 0);
  EXPECT_EQ(second.at("sequence"), first.at("sequence"));
  content[5 * kPageOfFiles] ^= 1;
  content += noise(2, 3);
  file("db", content);  // another file with the same name, as many programs write files
  std::filesystem::create_symlink("db", path("link"));
  const Result third = must({"attach", store, "db", path("link"), "--snapshot", "v1"});
  EXPECT_TRUE(contains(third.out, "4 pages changed")) << third.out;
  EXPECT_EQ(read_file(path("db")), content);
  EXPECT_EQ(must({"cat", store, "v1"}).out, content);
  expect_failure({"attach", store, "db", path("db"), "--snapshot", "v1"}, 4, "already_exists",
                 "v1");
  expect_failure({"attach", store, "db", path("gone")}, 3, "not_found", path("gone"));
  expect_failure({"attach", store, "db", file("empty", "")}, 2, "invalid_argument", "empty");
  file("db", noise(2, 1));
  must({"attach", store, "db", path("db")});
  EXPECT_EQ(read_file(path("db")), noise(2, 1));
  EXPECT_EQ(must({"cat", store, "db"}).out, noise(2, 1));
}

// If no version has a file size, a shorter file in whole pages might be corrupted.
TEST_F(Commands, AttachRefusesAFileThatHasLostPages) {
  const std::string store = make_store();
  must({"attach", store, "db", file("db", noise(4, 1))});
  file("db", noise(2, 1));
  expect_failure({"attach", store, "db", path("db")}, 2, "invalid_argument", path("db"));
  EXPECT_EQ(read_file(path("db")), noise(2, 1));
  must({"import", store, "db", path("db")});
  EXPECT_EQ(must({"cat", store, "db"}).out, noise(2, 1));
}

TEST_F(Commands, CatPrintsARange) {
  const std::string content = noise(3000, 7);  // more than one chunk
  const std::string store = make_store_with({content});
  for (const char* version : {"v1", "main"}) {
    EXPECT_EQ(must({"cat", store, version, "--offset", "5000", "--length", "1K"}).out,
              content.substr(5000, 1024));
    EXPECT_EQ(must({"cat", store, version, "--offset", "8M"}).out, content.substr(8 << 20));
    EXPECT_EQ(must({"cat", store, version, "--length", "0"}).out, "");
    EXPECT_EQ(must({"cat", store, version, "--offset", std::to_string(content.size())}).out, "");
  }
}

TEST_F(Commands, LogListsNewestFirst) {
  const std::string store = make_store_with({noise(1, 1), noise(2, 2)});
  const auto object = must({"log", store, "--json"}).json();
  EXPECT_EQ(object.at("store"), store);
  EXPECT_EQ(names_in(object), (Names{"main", "v2", "v1"}));
  const auto& v2 = object.at("versions")[1];
  EXPECT_EQ(v2.at("kind"), "snapshot");
  EXPECT_EQ(v2.at("branch"), "main");
  EXPECT_EQ(v2.at("message"), "message of v2");
  EXPECT_EQ(v2.at("region_bytes"), 2 * kPageOfFiles);
  EXPECT_GT(v2.at("time_ns"), 1'500'000'000'000'000'000);
  EXPECT_EQ(v2.at("order"), 2);
  EXPECT_TRUE(object.at("versions")[0].at("order").is_null());
  const std::string time = v2.at("created");
  EXPECT_EQ(time.size(), std::strlen("2024-05-01T12:00:00.000000000Z")) << time;
  EXPECT_EQ(time.back(), 'Z');
  EXPECT_EQ(must({"log", store, "--names"}).out, "main\nv2\nv1\n");
  const auto lines = lines_of(must({"log", store}).out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].starts_with("version")) << lines[0];
  EXPECT_TRUE(lines[2].starts_with("v2 ")) << lines[2];
  EXPECT_TRUE(contains(lines[2], "message of v2"));
  EXPECT_TRUE(contains(lines[2], time.substr(0, 19) + "Z")) << lines[2];
  EXPECT_TRUE(contains(lines[2], "8.0 KiB"));
}

TEST_F(Commands, LogOfAnEmptyStoreIsEmpty) {
  const std::string store = make_store();
  EXPECT_EQ(must({"log", store}).out, "");
  EXPECT_TRUE(contains(must({"log", store}).err, "no version yet"));
  EXPECT_EQ(must({"log", store, "--quiet"}).err, "");
  EXPECT_EQ(must({"log", store, "--json"}).err, "");
  EXPECT_TRUE(must({"log", store, "--json"}).json().at("versions").empty());
}

TEST_F(Commands, LogOfOneLineOmitsOthers) {
  const std::string store = make_store_with({noise(1, 1), noise(1, 2)});
  must({"branch", store, "side", "v1"});
  must({"import", store, "side", file("f", noise(1, 3)), "--snapshot", "s1"});
  EXPECT_EQ(must({"log", store, "side", "--names"}).out, "side\ns1\nv1\n");
  EXPECT_EQ(must({"log", store, "main", "--names"}).out, "main\nv2\nv1\n");
  EXPECT_EQ(must({"log", store, "v1", "--names"}).out, "v1\n");
  EXPECT_EQ(names_in(must({"log", store, "v2", "--json"}).json()), (Names{"v2", "v1"}));
  must({"rm", store, "v2"});
  must({"snapshot", store, "late"});
  EXPECT_EQ(must({"log", store, "main", "--names"}).out.find("side"), std::string::npos);
  EXPECT_TRUE(contains(must({"log", store, "main", "--names"}).out, "late\n"));
}

TEST_F(Commands, NamesOfCommandsMayBeNamesOfVersions) {
  const std::string store = make_store_with({noise(1, 1)});
  must({"snapshot", store, "log"});
  must({"branch", store, "branch", "log"});
  EXPECT_EQ(must({"show", store, "log", "--json"}).json().at("name"), "log");
  EXPECT_EQ(must({"log", store, "branch", "--names"}).status, 0);
  must({"rm", store, "log"});
}

TEST_F(Commands, ShowPrintsOneVersion) {
  const std::string store = make_store();
  must({"import", store, "main", file("f", noise(3, 1)), "-m", "line one\nline two", "--snapshot",
        "year+2009_a.b"});
  const Result text = must({"show", store, "year+2009_a.b"});
  EXPECT_TRUE(contains(text.out, "version  year+2009_a.b\nkind     snapshot\nbranch   main\n"))
      << text.out;
  EXPECT_TRUE(contains(text.out, "size     12.0 KiB (12288 bytes)\n")) << text.out;
  EXPECT_TRUE(contains(text.out, "\n    line one\n    line two\n")) << text.out;
  const auto object = must({"--json", "show", store, "main"}).json();
  EXPECT_EQ(object.at("kind"), "branch");
  EXPECT_EQ(object.at("parent"), "year+2009_a.b");
  EXPECT_EQ(object.at("store"), store);
}

TEST_F(Commands, StatComparesWithFullCopies) {
  std::string content = noise(100, 1);
  const std::string first = content;
  content[0] ^= 1;
  const std::string store = make_store_with({first, content});
  const auto object = must({"stat", store, "--json"}).json();
  EXPECT_EQ(object.at("snapshots"), 2);
  EXPECT_EQ(object.at("branches"), 1);
  EXPECT_EQ(object.at("packs"), 1);
  EXPECT_EQ(object.at("full_copy_bytes"), 300 * kPageOfFiles);  // two snapshots and the head
  EXPECT_GT(object.at("stored_bytes"), 100 * kPageOfFiles);
  EXPECT_GT(object.at("pack_bytes"), 100 * kPageOfFiles);
  EXPECT_NEAR(object.at("ratio").get<double>(),
              object.at("full_copy_bytes").get<double>() / object.at("stored_bytes").get<double>(),
              1e-9);
  EXPECT_EQ(names_in(object), (Names{"main", "v2", "v1"}));
  const Result text = must({"stat", store});
  EXPECT_TRUE(contains(text.out, "2 snapshots, 1 branch\n")) << text.out;
  EXPECT_TRUE(contains(text.out, "full copies  1.2 MiB")) << text.out;
  EXPECT_TRUE(contains(text.out, "times the store")) << text.out;
}

TEST_F(Commands, StatOfAnEmptyStore) {
  const std::string store = make_store();
  EXPECT_EQ(must({"stat", store, "--json"}).json().at("full_copy_bytes"), 0);
  EXPECT_FALSE(contains(must({"stat", store}).out, "times"));
}

class Diff : public CliTest {
 protected:
  Diff() {
    std::string a = noise(6, 1);
    std::string b = a;
    b[10] ^= 1;
    b[11] ^= 1;
    b[kPageOfFiles + 1] ^= 1;
    for (std::size_t i = 4 * kPageOfFiles - 8; i < 4 * kPageOfFiles + 8; ++i) {
      b[i] ^= 1;
    }
    store_ = make_store_with({a, b});
  }
  std::string store_;
};

TEST_F(Diff, ListsByteRanges) {
  const Result text = must({"diff", store_, "v1", "v2"});
  const auto lines = lines_of(text.out);
  ASSERT_EQ(lines.size(), 5u) << text.out;
  EXPECT_TRUE(contains(lines[1], " 10            2  0")) << lines[1];
  EXPECT_TRUE(contains(lines[2], " 4097            1  1")) << lines[2];
  EXPECT_TRUE(contains(lines[3], " 16376           16  3-4")) << lines[3];
  EXPECT_EQ(lines[4], "19 bytes in 3 ranges on 4 pages");
  const auto object = must({"diff", store_, "v1", "v2", "--json"}).json();
  EXPECT_EQ(object.at("ranges"), nlohmann::json::parse(R"([{"offset":10,"length":2},
      {"offset":4097,"length":1},{"offset":16376,"length":16}])"));
  EXPECT_EQ(object.at("different"), true);
  EXPECT_EQ(object.at("pages_different"), 4);
  EXPECT_EQ(object.at("bytes_different"), 19);
  EXPECT_EQ(object.at("range_count"), 3);
}

TEST_F(Diff, ListsPages) {
  EXPECT_EQ(must({"diff", store_, "v1", "v2", "--pages"}).out,
            "pages 0-1\npages 3-4\n19 bytes in 3 ranges on 4 pages\n");
  EXPECT_EQ(must({"diff", store_, "v1", "v2", "--pages", "--json"}).json().at("pages"),
            nlohmann::json::parse(R"([{"first":0,"count":2},{"first":3,"count":2}])"));
}

TEST_F(Diff, SummaryHasNoList) {
  EXPECT_EQ(must({"diff", store_, "v1", "v2", "--summary"}).out,
            "19 bytes in 3 ranges on 4 pages\n");
  const auto object = must({"diff", store_, "v1", "v2", "--summary", "--json"}).json();
  EXPECT_FALSE(object.contains("ranges"));
  EXPECT_EQ(object.at("bytes_different"), 19);
}

TEST_F(Diff, ExitCodeOptionSetsTheExitStatus) {
  EXPECT_EQ(run({"diff", store_, "v1", "v2", "--exit-code"}).status, 1);
  EXPECT_EQ(run({"diff", store_, "v1", "v2", "--exit-code", "--json"}).status, 1);
  const Result quiet = run({"diff", store_, "v1", "v2", "--quiet"});
  EXPECT_EQ(quiet.status, 1);
  EXPECT_EQ(quiet.out + quiet.err, "");
  EXPECT_EQ(run({"diff", store_, "v2", "main", "--exit-code"}).status, 0);
  EXPECT_EQ(run({"diff", store_, "v2", "main", "-q"}).status, 0);
}

TEST_F(Diff, SameContentIsNoDifference) {
  EXPECT_EQ(must({"diff", store_, "v2", "main"}).out, "no difference\n");
  const auto object = must({"diff", store_, "v2", "main", "--json"}).json();
  EXPECT_EQ(object.at("different"), false);
  EXPECT_TRUE(object.at("ranges").empty());
}

TEST_F(Diff, AnotherSizeIsADifference) {
  must({"import", store_, "main",
        file("f", read_file(path("v2")) + std::string(kPageOfFiles, '\0'))});
  const Result text = run({"diff", store_, "v2", "main", "--exit-code"});
  EXPECT_EQ(text.status, 1);
  EXPECT_TRUE(contains(text.out, "24576 and 28672 bytes")) << text.out;
}

TEST_F(Commands, BranchCreatesAndLists) {
  const std::string store = make_store_with({noise(2, 1), noise(2, 2)});
  EXPECT_TRUE(contains(must({"branch", store, "old", "v1"}).out, "created branch 'old' from 'v1'"));
  const auto made = must({"branch", store, "new", "--json"}).json();
  EXPECT_EQ(made.at("name"), "new");
  EXPECT_EQ(made.at("from"), "main");
  EXPECT_EQ(must({"branch", store, "--names"}).out, "main\nnew\nold\n");
  EXPECT_EQ(names_in(must({"branch", store, "--json"}).json()), (Names{"main", "new", "old"}));
  EXPECT_EQ(must({"cat", store, "old"}).out, noise(2, 1));
  must({"import", store, "old", file("f", noise(2, 3))});
  EXPECT_EQ(must({"cat", store, "old"}).out, noise(2, 3));
  EXPECT_EQ(must({"cat", store, "v1"}).out, noise(2, 1));
  EXPECT_EQ(must({"cat", store, "main"}).out, noise(2, 2));
}

TEST_F(Commands, SnapshotNamesAHeadAndTagIsTheSame) {
  const std::string store = make_store();
  must({"import", store, "main", file("f", noise(2, 1)), "-m", "of the commit"});
  must({"snapshot", store, "a"});
  const auto made = must({"tag", store, "b", "main", "-m", "of the tag", "--json"}).json();
  EXPECT_EQ(made.at("name"), "b");
  EXPECT_EQ(made.at("message"), "of the tag");
  must({"tag", store, "c", "a"});
  must({"import", store, "main", file("f", noise(2, 2))});
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(must({"cat", store, name}).out, noise(2, 1)) << name;
  }
  EXPECT_EQ(must({"show", store, "a", "--json"}).json().at("message"), "of the commit");
  const auto names = lines_of(must({"snapshot", store, "--names"}).out);
  EXPECT_EQ(Names({names.begin(), names.end()}).size(), 3u);
  EXPECT_EQ(names_in(must({"tag", store, "--json"}).json()).size(), 3u);
}

TEST_F(Commands, RmRemovesSnapshotsAndBranches) {
  const std::string store = make_store_with({noise(2, 1), noise(2, 2), noise(2, 3)});
  must({"branch", store, "side", "v1"});
  EXPECT_EQ(must({"rm", store, "v1"}).out, "removed snapshot 'v1'\n");
  EXPECT_EQ(must({"rm", store, "v2", "v3", "--json"}).json().at("removed"),
            nlohmann::json({"v2", "v3"}));
  EXPECT_EQ(must({"rm", store, "--branch", "side"}).out, "removed branch 'side'\n");
  EXPECT_EQ(must({"log", store, "--names"}).out, "main\n");
  EXPECT_EQ(must({"cat", store, "main"}).out, noise(2, 3));
}

TEST_F(Commands, RmChecksAllNamesFirst) {
  const std::string store = make_store_with({noise(1, 1)});
  expect_failure({"rm", store, "v1", "gone"}, 3, "not_found", "gone");
  expect_failure({"rm", store, "v1", "main"}, 2, "invalid_argument", "main");
  expect_failure({"rm", store, "--branch", "main", "v1"}, 2, "invalid_argument", "v1");
  EXPECT_EQ(must({"log", store, "--names"}).out, "main\nv1\n");
}

TEST_F(Commands, VerifyOfAnIntactStoreSucceeds) {
  const std::string store = make_store_with({noise(20, 1), noise(20, 2)});
  EXPECT_TRUE(contains(must({"verify", store}).out, "checked 3 versions, 1 pack"));
  const auto object = must({"verify", store, "--read-data", "--json"}).json();
  EXPECT_EQ(object.at("ok"), true);
  EXPECT_EQ(object.at("read_data"), true);
  EXPECT_EQ(object.at("versions"), 3);
  EXPECT_GT(object.at("bytes_read"), 40 * kPageOfFiles);
  EXPECT_TRUE(object.at("damages").empty());
  EXPECT_FALSE(object.contains("error"));
  EXPECT_EQ(must({"verify", store, "-q"}).out, "");
}

TEST_F(Commands, QuietPrintsOnlyRequestedOutput) {
  const std::string store = path("s");
  const std::string f = file("f", noise(1, 1));
  for (const Arguments& arguments :
       {Arguments{"init", store}, Arguments{"import", store, "main", f},
        Arguments{"snapshot", store, "a"}, Arguments{"branch", store, "b", "a"},
        Arguments{"export", store, "a", path("out")}, Arguments{"rm", store, "a"}}) {
    Arguments quiet = arguments;
    quiet.push_back("--quiet");
    const Result result = must(quiet);
    EXPECT_EQ(result.out + result.err, "") << arguments[0];
  }
  EXPECT_NE(must({"-q", "log", store}).out, "");
  EXPECT_EQ(must({"-q", "cat", store, "main"}).out, noise(1, 1));
}

TEST_F(Commands, ExportReports) {
  const std::string store = make_store_with({noise(3, 1)});
  EXPECT_EQ(must({"export", store, "v1", path("a")}).out,
            "exported 'v1' to " + path("a") + " (12.0 KiB)\n");
  const auto object = must({"export", store, "v1", path("b"), "--json"}).json();
  EXPECT_EQ(object.at("file"), path("b"));
  EXPECT_EQ(object.at("size_bytes"), 3 * kPageOfFiles);
}

// With a concurrent writer, the output of cat must not mix two heads.
TEST_F(Commands, CatOfAHeadReadsOneCommit) {
  const std::string store_path = make_store();
  Store store = Store::open(store_path);
  Region region = store.open_or_create_region("main", 3000 * kPageOfFiles);
  std::memset(region.data(), 'a', region.size_bytes());
  region.commit();
  std::memset(region.data(), 'b', region.size_bytes());
  EXPECT_EQ(must({"cat", store_path, "main"}).out, std::string(3000 * kPageOfFiles, 'a'));
  region.commit();
  EXPECT_EQ(must({"cat", store_path, "main"}).out, std::string(3000 * kPageOfFiles, 'b'));
}

TEST_F(Commands, LogDrawsTheAncestryOfVersions) {
  const std::string store = make_store_with({noise(1, 1), noise(1, 2), noise(1, 3)});
  must({"branch", store, "early", "v1"});
  must({"branch", store, "side", "v2"});
  must({"import", store, "side", file("f", noise(1, 4)), "--snapshot", "s1"});
  EXPECT_EQ(must({"log", store, "--graph", "--names"}).out,
            "* side\n"
            "* s1\n"
            "| * main\n"
            "| * v3\n"
            "|/\n"
            "* v2\n"
            "| * early\n"
            "|/\n"
            "* v1\n");
  const auto lines = lines_of(must({"log", store, "--graph"}).out);
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_TRUE(contains(lines[4], "| *   v3 ")) << lines[4];
  EXPECT_TRUE(contains(lines[4], "snapshot")) << lines[4];
  EXPECT_EQ(lines[5], "|/");
  EXPECT_EQ(must({"log", store, "--graph", "--json"}).out, must({"log", store, "--json"}).out);
  must({"rm", store, "v2"});
  EXPECT_EQ(must({"log", store, "--graph", "--names"}).out,
            "* side\n"
            "* s1\n"
            "* main\n"
            "* v3\n"
            "* early\n"
            "* v1\n");
}

TEST_F(Commands, LogDrawsCrossingLines) {
  const std::string store = make_store_with({noise(1, 1)});
  for (const char* name : {"a", "b", "c"}) {
    must({"branch", store, name, "v1"});
    must({"import", store, name, file("f", noise(1, 9)), "--snapshot", std::string(name) + "1"});
  }
  EXPECT_EQ(must({"log", store, "--graph", "--names"}).out,
            "* c\n"
            "* c1\n"
            "| * b\n"
            "| * b1\n"
            "| | * a\n"
            "| | * a1\n"
            "| | | * main\n"
            "|_|_|/\n"
            "|_|/\n"
            "|/\n"
            "* v1\n");
  must({"branch", store, "d", "a1"});
  must({"rm", store, "v1"});
  EXPECT_EQ(must({"log", store, "--graph", "--names"}).out,
            "* c\n"
            "* c1\n"
            "* b\n"
            "* b1\n"
            "* a\n"
            "| * d\n"
            "|/\n"
            "* a1\n"
            "* main\n");
}

}  // namespace
}  // namespace vellum::cli_test
