// Names of versions: main~2, latest, @{yesterday}, main@12, sets; and the lists that select them.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include <vellum/store.hpp>

#include "region/api/snapshots_of.hpp"
#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class VersionNames : public CliTest {
 protected:
  static std::string name_of(const std::string& store, const std::string& version) {
    return must({"show", store, version, "--json"}).json().at("name");
  }
  static std::string error_of(const std::string& store, const std::string& version, int status) {
    const Result result = run({"show", store, version});
    EXPECT_EQ(result.status, status) << version << ": " << result.out << result.err;
    return result.err;
  }
  // Runs with a clock that is this many days behind.
  static void must_days_ago(int days, const Arguments& arguments) {
    const std::string seconds = std::to_string(days * 86'400);
    const Result result = run(arguments, [&] {
      ::setenv("LD_PRELOAD", VELLUM_CLOCK_BACK, 1);
      ::setenv("VELLUM_TEST_CLOCK_BACK", seconds.c_str(), 1);
    });
    ASSERT_EQ(result.status, 0) << result.err;
  }
};

TEST_F(VersionNames, RelativeNamesCountBackAlongTheLine) {
  const std::string store = make_store_with({noise(1, 1), noise(1, 2), noise(1, 3)});
  EXPECT_EQ(name_of(store, "main~0"), "main");
  EXPECT_EQ(name_of(store, "main~"), "v3");
  EXPECT_EQ(name_of(store, "main~2"), "v2");
  EXPECT_EQ(name_of(store, "v3~2"), "v1");
  must({"branch", store, "side", "v2"});
  EXPECT_EQ(name_of(store, "side~1"), "v2");
  EXPECT_NE(error_of(store, "main~4", 3).find("'main' has 3 snapshots before it"),
            std::string::npos);
  EXPECT_NE(error_of(store, "v1~", 3).find("'v1' has 0 snapshots before it"), std::string::npos);
  must({"rm", store, "v1"});
  EXPECT_NE(error_of(store, "main~3", 3).find("goes back to 'v1', which has been removed"),
            std::string::npos);
}

TEST_F(VersionNames, LatestIsTheNewestSnapshotUnlessItIsAName) {
  const std::string store = make_store_with({noise(1, 1), noise(1, 2)});
  EXPECT_EQ(name_of(store, "latest"), "v2");
  EXPECT_EQ(name_of(store, "latest~"), "v1");
  must({"snapshot", store, "again", "v1"});
  EXPECT_EQ(name_of(store, "latest"), "again");
  must({"snapshot", store, "latest", "v1"});
  must({"snapshot", store, "newer", "v2"});
  EXPECT_EQ(name_of(store, "latest"), "latest");
  must({"init", path("empty")});
  EXPECT_NE(error_of(path("empty"), "latest", 3).find("no snapshot yet"), std::string::npos);
}

// A removed snapshot `latest` is the parent of others, and a name of a version again.
TEST_F(VersionNames, ARemovedSnapshotNamedLatestIsNotFollowed) {
  const std::string store = make_store_with({noise(1, 1)});
  must({"snapshot", store, "latest"});
  const std::string f = file("more", noise(1, 2));
  must({"import", store, "main", f, "--snapshot", "after"});
  ASSERT_EQ(must({"show", store, "after", "--json"}).json().at("parent"), "latest");
  must({"rm", store, "latest"});
  EXPECT_EQ(name_of(store, "latest"), "after");
  EXPECT_NE(error_of(store, "after~", 3).find("goes back to 'latest', which has been removed"),
            std::string::npos);
  EXPECT_NE(error_of(store, "latest~", 3).find("which has been removed"), std::string::npos);
  must({"show", store, "after", "--stat"});
  must({"rm", store, "after"});
  EXPECT_EQ(name_of(store, "latest"), "v1");
  must({"rm", store, "v1"});
  EXPECT_NE(error_of(store, "latest", 3).find("no snapshot yet"), std::string::npos);
}

// The first N lines of a list are the list of N, with whole sets, in a store with more snapshots than
// are noted.
TEST_F(VersionNames, AListOfNIsTheBeginningOfTheWholeList) {
  const std::string path_of_store = path("many");
  std::vector<std::string> branches{"a", "b", "c"};
  Store made = Store::create(path_of_store);
  for (const std::string& branch : branches) made.create_region(branch, 4096).commit();
  const auto keep_set = [&](const std::string& set) {
    for (const std::string& branch : branches)
      made.create_snapshot(api::member_name(set, branches, branch), branch);
  };
  keep_set("old");
  for (int i = 0; i < 150; ++i) {
    made.create_snapshot("s" + std::to_string(i), "b");
    if (i % 20 == 19) keep_set("set" + std::to_string(i));
  }
  // Members that were made with others in between, or again.
  made.create_snapshot(api::member_name("wide", branches, "a"), "a");
  for (int i = 0; i < 30; ++i) made.create_snapshot("t" + std::to_string(i), "c");
  made.create_snapshot(api::member_name("wide", branches, "b"), "b");
  made.remove_snapshot(api::member_name("old", branches, "b"));
  made.create_snapshot(api::member_name("old", branches, "b"), "b");
  const auto lines = [](const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  };
  // Without the file, every ref is read.
  const auto list = [&](std::size_t most, bool with_file) {
    if (!with_file) fs::remove(path_of_store + "/snapshots.newest");
    return lines(must({"log", path_of_store, "-n", std::to_string(most), "--names"}).out);
  };
  const auto all = lines(must({"log", path_of_store, "--names"}).out);
  for (const std::size_t most : {1u, 3u, 4u, 5u, 6u, 20u, 60u, 130u, 150u, 500u}) {
    list(1, true);  // a list of many does not write the file
    ASSERT_TRUE(fs::exists(path_of_store + "/snapshots.newest"));
    const auto found = list(most, true);
    EXPECT_EQ(found, list(most, false)) << most;
    // With --grep '', which reads all.
    EXPECT_EQ(found, lines(must({"log", path_of_store, "-n", std::to_string(most), "--names",
                                 "--since", "1990-01-01"})
                               .out))
        << most;
    EXPECT_TRUE(found.size() >= std::min(most, all.size())) << most;
  }
  EXPECT_EQ(list(0, true).size(), 0U);
}

// A set of this name comes before the word, also when its members are old.
TEST_F(VersionNames, ASetNamedLatestComesBeforeTheWord) {
  const std::string store = make_store_with({noise(1, 1)});
  must({"snapshot", store, "latest", "--all"});
  const auto is_set = [&] {
    return must({"show", store, "latest", "--json"}).json().value("set", "") == "latest";
  };
  EXPECT_TRUE(is_set());
  Store made = Store::open(store);
  for (int i = 0; i < 150; ++i) made.create_snapshot("s" + std::to_string(i), "v1");
  EXPECT_TRUE(is_set());
  fs::remove(store + "/snapshots.newest");
  EXPECT_TRUE(is_set());
  EXPECT_TRUE(is_set()) << "by the file that the list has written";
}

TEST_F(VersionNames, ATimeMeansTheNewestSnapshotOfThatTimeNoSanitizer) {
  const std::string store = make_store_with({noise(1, 1)});
  must({"rm", store, "v1"});
  must_days_ago(30, {"snapshot", store, "month"});
  must_days_ago(2, {"snapshot", store, "days"});
  must_days_ago(2, {"branch", store, "side", "month"});
  must({"snapshot", store, "today"});
  EXPECT_EQ(name_of(store, "@{yesterday}"), "days");
  EXPECT_EQ(name_of(store, "main@{1h}"), "days");
  EXPECT_EQ(name_of(store, "main@{3 days ago}"), "month");
  EXPECT_EQ(name_of(store, "@{4weeks}"), "month");
  EXPECT_EQ(name_of(store, "side@{yesterday}"), "month");
  EXPECT_EQ(name_of(store, "main@{0s}"), "today");
  EXPECT_NE(error_of(store, "main@{5 weeks ago}", 3).find("no snapshot on the line of 'main'"),
            std::string::npos);
  EXPECT_NE(error_of(store, "@{soon}", 2).find("'soon' is no time"), std::string::npos);
}

TEST_F(VersionNames, EachReadingCommandAcceptsRelativeNames) {
  const std::string old = noise(1, 1);
  const std::string store = make_store_with({old, noise(1, 2)});
  EXPECT_EQ(must({"cat", store, "main~2"}).out, old);
  must({"export", store, "latest~1", path("exported")});
  EXPECT_EQ(read_file(path("exported")), old);
  write_file(path("restored"), "other");
  must({"restore", store, "v2~1", path("restored")});
  EXPECT_EQ(read_file(path("restored")), old);
  EXPECT_EQ(run({"diff", store, "latest~1", "v1", "--exit-code"}).status, 0);
  EXPECT_EQ(run({"diff", store, "latest~1", "latest", "--exit-code"}).status, 1);
  must({"snapshot", store, "kept", "main~2"});
  must({"branch", store, "side", "main~2"});
  EXPECT_EQ(must({"cat", store, "kept"}).out, old);
  EXPECT_EQ(must({"cat", store, "side"}).out, old);
  EXPECT_EQ(must({"log", store, "main~2", "--names"}).out, "v1\n");
}

TEST_F(VersionNames, RelativeNamesCannotNameNewVersions) {
  const std::string store = make_store_with({noise(1, 1)});
  EXPECT_EQ(run({"snapshot", store, "main~1"}).status, 2);
  EXPECT_EQ(run({"rm", store, "main~1"}).status, 3);
  EXPECT_NE(error_of(store, "main~x", 2).find("the number of snapshots"), std::string::npos);
  EXPECT_NE(error_of(store, "main~-1", 2).find("the number of snapshots"), std::string::npos);
  EXPECT_EQ(run({"show", store, "main~99999999999"}).status, 2);
  EXPECT_EQ(run({"show", store, "nobody~1"}).status, 3);
}

TEST_F(VersionNames, TimesAreParsedAsDocumented) {
  const std::string store = make_store_with({noise(1, 1)});
  for (const char* future : {"2199-12-31", "2199-12-31T23:59", "2199-12-31T23:59:59", "0min"})
    EXPECT_EQ(name_of(store, std::string("@{") + future + "}"), "v1") << future;
  EXPECT_NE(error_of(store, "@{2024-02-29}", 3).find("at 2024-02-29T23:59:59Z or before"),
            std::string::npos);
  EXPECT_NE(error_of(store, "@{2024-02-29T10:30}", 3).find("at 2024-02-29T10:30:59Z or before"),
            std::string::npos);
  for (const char* past : {"90minutes", "1 hour ago", "2 d", "1week", "100s"})
    error_of(store, std::string("@{") + past + "}", 3);
  for (const char* wrong :
       {"", "2023-02-29", "2026-13-01", "2026-11-24T24:00", "2026-11-24T10", "2026-11-24 10:30",
        "20261124", "days", "3", "3 moons ago", "-3 days", "99999999999 days", "36525 weeks",
        "2262-01-01", "1899-12-31", " ago", "3ss"})
    error_of(store, std::string("@{") + wrong + "}", 2);
}

TEST_F(VersionNames, LogListsATimeNoSanitizer) {
  const std::string store = make_store_with({noise(1, 1)});
  must_days_ago(10, {"snapshot", store, "old"});
  must_days_ago(2, {"snapshot", store, "recent"});
  const auto names = [&](const Arguments& options) {
    Arguments all = {"log", store, "--names"};
    all.insert(all.end(), options.begin(), options.end());
    return must(all).out;
  };
  EXPECT_EQ(names({"--since", "3 days ago", "--until", "yesterday"}), "recent\n");
  EXPECT_EQ(names({"--until", "5 days ago"}), "old\n");
  EXPECT_EQ(names({"--since", "yesterday"}), "main\nv1\n");
  EXPECT_EQ(names({"--since", "2199-01-01"}), "");
  EXPECT_EQ(names({"--until", "2199-01-01", "--grep", "rec", "-n", "1"}), "recent\n");
  for (const char* option : {"--since", "--until"}) {
    const Result wrong = run({"log", store, option, "soon"});
    EXPECT_EQ(wrong.status, 2);
    EXPECT_NE(wrong.err.find("'soon' is no time"), std::string::npos) << wrong.err;
  }
}

// A day means its beginning for --since, and its end for --until: both together are the day.
TEST_F(VersionNames, ADayIsInsideItself) {
  const std::string store = make_store_with({noise(1, 1)});
  const std::string day =
      must({"show", store, "v1", "--json"}).json().at("created").get<std::string>().substr(0, 10);
  EXPECT_EQ(must({"log", store, "--names", "--since", day, "--until", day}).out, "main\nv1\n");
  EXPECT_EQ(must({"log", store, "--names", "--since", day + "T23:59:59", "--grep", "v1"}).out, "");
}

class Commits : public VersionNames {
 protected:
  // Three commits that only the journal holds.
  Commits() {
    Store store = Store::create(path("s"));
    region_.emplace(store.create_region("main", 4096));
    commit("one");
    commit("two");
    commit("tri");
  }
  void commit(const std::string& text) {
    std::memcpy(region_->data(), text.data(), text.size());
    region_->commit("message " + text);
  }
  std::string content(const std::string& version) const {
    return must({"cat", path("s"), version, "--length", "3"}).out;
  }

  std::optional<Region> region_;
};

TEST_F(Commits, AreListedWithTheirMessagesWhileTheyCanBeRead) {
  commit("end");
  const auto versions = must({"log", path("s"), "--commits", "--json"}).json().at("versions");
  ASSERT_GE(versions.size(), 3U) << versions.dump();
  EXPECT_EQ(versions[0].at("name"), "main");
  EXPECT_EQ(versions[0].at("message"), "message end");
  std::vector<std::string> messages;
  for (const auto& v : versions) {
    if (v.at("kind") == "commit") messages.push_back(v.at("message"));
    EXPECT_EQ(v.at("order").is_null(), v.at("kind") != "snapshot");
  }
  EXPECT_EQ(messages, (std::vector<std::string>{"message tri", "message two", "message one"}));
  EXPECT_NE(must({"log", path("s"), "--commits"}).out.find("message two"), std::string::npos);
  EXPECT_EQ(must({"log", path("s"), "--names"}).out, "main\n");
  EXPECT_EQ(run({"log", path("s"), "--commits", "--graph"}).status, 2);
  region_->close();
  EXPECT_EQ(must({"log", path("s"), "--commits", "--names"}).out, "main\n");
}

TEST_F(Commits, AreVersionsForEveryCommandThatReads) {
  EXPECT_EQ(content("main@1"), "one");
  EXPECT_EQ(content("main@2"), "two");
  EXPECT_EQ(content("main@3"), "tri");
  const auto shown = must({"show", path("s"), "main@1", "--json"}).json();
  EXPECT_EQ(shown.at("kind"), "commit");
  EXPECT_EQ(shown.at("message"), "message one");
  EXPECT_EQ(must({"diff", path("s"), "main@1", "main@2", "--summary", "--json"})
                .json()
                .at("bytes_different"),
            3);
  must({"export", path("s"), "main@1", path("exported")});
  EXPECT_EQ(read_file(path("exported")).substr(0, 3), "one");
  region_->checkout("main@1");
  EXPECT_EQ(std::memcmp(region_->data(), "one", 3), 0);
}

// A snapshot and a branch of a commit have its content, and stay when the commit cannot be read.
TEST_F(Commits, CanBeKept) {
  must({"snapshot", path("s"), "kept", "main@1"});
  must({"branch", path("s"), "side", "main@2"});
  EXPECT_EQ(must({"show", path("s"), "kept", "--json"}).json().at("message"), "message one");
  EXPECT_EQ(must({"show", path("s"), "kept", "--json"}).json().at("branch"), "main");
  region_->snapshot("named");
  commit("end");
  region_->close();
  EXPECT_EQ(content("kept"), "one");
  EXPECT_EQ(content("side"), "two");
  const std::uint64_t sequence = must({"show", path("s"), "named", "--json"}).json()["sequence"];
  EXPECT_EQ(content("main@" + std::to_string(sequence)), "tri") << "by its snapshot";
  EXPECT_NE(error_of(path("s"), "main@2", 3).find("can no longer be read"), std::string::npos);
  EXPECT_NE(error_of(path("s"), "main@9", 3).find("its last is "), std::string::npos);
  EXPECT_NE(error_of(path("s"), "kept@1", 3).find("is a snapshot"), std::string::npos);
  for (const char* wrong : {"main@", "main@01", "main@-1", "@1", "main@1x", "other@1"})
    error_of(path("s"), wrong, 3);
  must({"verify", path("s"), "--read-data"});
}

TEST_F(Commits, AreTheStartOfAStretch) {
  const auto drawn = [&](const char* stretch) {
    const auto map = must({"heat", path("s"), stretch, "--json"}).json();
    std::string out = map.at("since");
    for (const auto& row : map.at("rows")) out += " " + row.at("version").get<std::string>();
    return out;
  };
  EXPECT_EQ(drawn("main@2..main"), "main@2 main");
  EXPECT_EQ(drawn("main@1..main@2"), "main@1 main@2");
  EXPECT_NE(run({"heat", path("s"), "main@3..main@2"}).err.find("is not before"),
            std::string::npos);
  EXPECT_NE(run({"du", path("s"), "main@2"}).err.find("'main@2' is a commit"), std::string::npos);
}

TEST_F(Commits, CannotBeRemovedOrPushed) {
  must({"remote", "add", path("s"), "origin", "file://" + path("remote")});
  for (const Arguments& arguments :
       {Arguments{"rm", path("s"), "main@1"}, Arguments{"rm", "--branch", path("s"), "main@1"},
        Arguments{"push", path("s"), "main@1"}}) {
    const Result result = run(arguments);
    EXPECT_EQ(result.status, 2) << arguments[0] << result.out;
    EXPECT_NE(result.err.find("'main@1' is a commit"), std::string::npos) << result.err;
  }
  EXPECT_EQ(content("main@1"), "one");
}

class Sets : public CliTest {
 protected:
  std::string s() const { return path("s"); }
  std::string log() const { return must({"log", s()}).out; }
  static std::size_t lines_with(const std::string& text, const std::string& word) {
    std::size_t count = 0;
    for (const std::string& line : lines_of(text)) count += contains(line, word) ? 1 : 0;
    return count;
  }
  // Of a set of branches `a` and `b`.
  static std::string member(const std::string& set, const std::string& branch) {
    return api::member_name(set, {"a", "b"}, branch);
  }
  static std::string both(const std::string& set) {
    return member(set, "b") + "\n" + member(set, "a") + "\n";
  }
};

TEST_F(Sets, ABackupOfSeveralFilesIsOneEntryAndRestoresAsOne) {
  const Arguments backup = {"backup", s(), file("a.db", "first a"), file("b.conf", "first b")};
  const auto with = [](Arguments all, const Arguments& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto made = must(with(backup, {"--name", "monday", "-m", "why", "--json"})).json();
  EXPECT_EQ(made.at("set"), "monday");
  EXPECT_EQ(made.at("files").size(), 2U);
  write_file(path("a.db"), "second a");
  write_file(path("b.conf"), "second b");
  must(with(backup, {"--name", "tuesday"}));
  EXPECT_EQ(lines_with(log(), "monday"), 1U) << log();
  EXPECT_TRUE(contains(log(), "2 members: why")) << log();
  EXPECT_EQ(lines_of(must({"log", s(), "-n", "3"}).out).size(), 4U) << "two branches, one set";
  fs::create_directory(path("to"));
  must({"restore", s(), "monday", path("to")});
  EXPECT_EQ(read_file(path("to/a.db")), "first a");
  EXPECT_EQ(read_file(path("to/b.conf")), "first b");
  EXPECT_EQ(run({"restore", s(), "monday"}).status, 2) << "the store does not know their places";
  EXPECT_EQ(must({"show", s(), "monday", "--json"}).json().at("members").size(), 2U);
  must({"rm", s(), "monday"});
  EXPECT_EQ(lines_with(log(), "monday"), 0U) << log();
}

TEST_F(Sets, AFileWhoseNameNoBranchCanHaveIsAMember) {
  const auto made = must({"backup", s(), file("a b.db", "first"), file("a+b.db", "second"),
                          "--name", "monday", "--json"})
                        .json();
  const std::string branch = made.at("files").at(0).at("branch");
  EXPECT_EQ(branch, "file+a+20b.db");
  EXPECT_EQ(must({"cat", s(), branch}).out, "first");
  EXPECT_EQ(must({"cat", s(), "a+b.db"}).out, "second");
  fs::create_directory(path("to"));
  must({"restore", s(), "monday", path("to")});
  EXPECT_EQ(read_file(path("to/a b.db")), "first");
  must({"run", "--store", s(), "--file", path("a b.db"), "--file", path("a+b.db"), "--", "true"});
  must({"restore", s(), "monday"});
}

TEST_F(Sets, AreAllOrNothing) {
  file("a.db", "a");
  must({"backup", s(), path("a.db"), "--name", api::member_name("taken", {"a.db", "b"}, "a.db")});
  const auto backup = [&](const std::string& second, const std::string& name) {
    return run({"backup", s(), path("a.db"), second, "--name", name});
  };
  EXPECT_EQ(backup(path("missing"), "x").status, 3);
  EXPECT_EQ(backup(file("b", "b"), "taken").status, 4);
  fs::create_directory(path("d"));
  EXPECT_EQ(backup(file("d/a.db", "other"), "x").status, 2) << "two files of one branch";
  EXPECT_EQ(run({"backup", s(), path("a.db"), path("b"), "--name", "x", "--branch", "y"}).status,
            2);
  write_file(path("c"), "c");
  const int open_file = ::open(path("c").c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(backup(path("c"), "x").status, 7) << "open for writing";
  ::close(open_file);
  EXPECT_EQ(must({"snapshot", s(), "--names"}).out,
            api::member_name("taken", {"b", "a.db"}, "a.db") + "\n");
}

TEST_F(Sets, SnapshotAllKeepsEveryBranch) {
  must({"import", s(), "a", file("x", "1")});
  must({"import", s(), "b", file("y", "2")});
  must({"snapshot", s(), "all", "--all", "-m", "both"});
  EXPECT_EQ(must({"snapshot", s(), "--names"}).out, both("all"));
  EXPECT_EQ(lines_with(must({"snapshot", s()}).out, "2 members: both"), 1U);
  EXPECT_EQ(run({"snapshot", s(), "all", "--all"}).status, 4);
  EXPECT_EQ(run({"snapshot", s(), "c", "a", "--all"}).status, 2);
  for (const auto& v : must({"log", s(), "--json"}).json().at("versions"))
    EXPECT_EQ(v.at("set").is_null(), v.at("kind") == "branch") << v.dump();
}

// As after a kill in Store::convert_to_branch(): the name is a branch's and a snapshot's.
TEST_F(Sets, ANameOfBothIsNoMemberAndNoBranch) {
  must({"import", s(), "a", file("x", "1")});
  must({"import", s(), "b", file("y", "2")});
  must({"snapshot", s(), "half", "a"});
  fs::copy_file(s() + "/snapshots/half.ref", path("half.ref"));
  Store::open(s()).convert_to_branch("half");
  fs::copy_file(path("half.ref"), s() + "/snapshots/half.ref");
  EXPECT_EQ(must({"branch", s(), "--names"}).out, "a\nb\n");
  EXPECT_EQ(must({"log", s(), "--names"}).out, "a\nb\nhalf\n");
  must({"snapshot", s(), "all", "--all"});
  EXPECT_EQ(must({"show", s(), "all", "--json"}).json().at("complete"), true);
  EXPECT_EQ(must({"snapshot", s(), "--names"}).out, both("all") + "half\n");
}

TEST_F(Sets, WhatARunHasMadeIsOneEntryAndRestoresToItsPlacesNoSanitizer) {
  const auto changed = [&](const std::string& name, const std::string& to) {
    return run({"run", "--store", s(), "--file", path("a.db"), "--file", path("b.db"), "--snapshot",
                name, "--", "sh", "-c",
                "echo " + to + " > " + path("a.db") + "; echo " + to + " > " + path("b.db")});
  };
  EXPECT_EQ(changed("one", "first").status, 0);
  EXPECT_EQ(changed("two", "second").status, 0);
  EXPECT_EQ(changed("one", "third").status, 4) << "before the program starts";
  EXPECT_EQ(lines_with(log(), "one"), 1U) << log();
  must({"restore", s(), "one"});
  EXPECT_EQ(read_file(path("a.db")) + read_file(path("b.db")), "first\nfirst\n");
  must({"restore", s(), "two"});
  EXPECT_EQ(read_file(path("a.db")) + read_file(path("b.db")), "second\nsecond\n");
}

// As after a kill of the command that was making it.
TEST_F(Sets, AnIncompleteOneIsSeenAndRestoredOnlyWithForce) {
  must({"import", s(), "a", file("x", "1")});
  must({"import", s(), "b", file("y", "2")});
  must({"snapshot", s(), "all", "--all"});
  EXPECT_EQ(must({"show", s(), "all", "--json"}).json().at("complete"), true);
  must({"rm", s(), member("all", "b")});
  fs::create_directory(path("to"));
  const Result refused = run({"restore", s(), "all", path("to")});
  EXPECT_EQ(refused.status, 3) << refused.out;
  EXPECT_TRUE(contains(refused.err, "1 of 2 members; branches without a member: b."))
      << refused.err;
  EXPECT_TRUE(fs::is_empty(path("to")));
  EXPECT_TRUE(contains(log(), "1 of 2 members")) << log();
  EXPECT_TRUE(contains(must({"show", s(), "all"}).out, "incomplete: 1 of 2 members"));
  EXPECT_EQ(must({"show", s(), "all", "--json"}).json().at("complete"), false);
  must({"restore", s(), member("all", "a"), path("to/one")});
  must({"restore", s(), "all", path("to"), "--force"});
  EXPECT_EQ(read_file(path("to/a")) + read_file(path("to/one")), "11");
}

TEST_F(Sets, ForgetKeepsAllMembersOrNone) {
  must({"import", s(), "a", file("x", "1")});
  must({"import", s(), "b", file("y", "2")});
  must({"snapshot", s(), "old", "--all"});
  must({"snapshot", s(), "all", "--all"});
  must({"snapshot", s(), "newer", "a"});
  must({"forget", s(), "--keep-last", "1", "--branch", "a"});
  EXPECT_EQ(must({"snapshot", s(), "--names"}).out, "newer\n" + both("all") + both("old"));
  must({"forget", s(), "--keep-last", "1"});
  EXPECT_EQ(must({"snapshot", s(), "--names"}).out, "newer\n" + both("all"));
}

// As two stores that share a remote may make them.
TEST_F(Sets, TwoOfOneNameAndSizeAreTwo) {
  for (const char* branch : {"a", "b", "c", "d"}) must({"import", s(), branch, file("x", branch)});
  for (const char* branch : {"a", "b"}) must({"snapshot", s(), member("all", branch), branch});
  const std::vector<std::string> others{"c", "d"};
  for (const std::string& branch : others)
    must({"snapshot", s(), api::member_name("all", others, branch), branch});
  EXPECT_EQ(lines_with(log(), "2 members"), 2U) << log();
  fs::create_directory(path("to"));
  for (const Arguments& command :
       {Arguments{"restore", s(), "all", path("to")}, {"rm", s(), "all"}, {"show", s(), "all"}}) {
    const Result refused = run(command);
    EXPECT_EQ(refused.status, 2);
    EXPECT_TRUE(contains(refused.err, "several sets")) << refused.err;
  }
  const std::string id = member("all", "a").substr(0, member("all", "a").rfind('+'));
  must({"restore", s(), id, path("to")});
  EXPECT_EQ(read_file(path("to/a")) + read_file(path("to/b")), "ab");
  must({"rm", s(), member("all", "b")});
  EXPECT_EQ(run({"restore", s(), id, path("to")}).status, 3) << "it is not completed by the other";
  must({"rm", s(), id});
  must({"restore", s(), "all", path("to")});
  EXPECT_EQ(read_file(path("to/c")) + read_file(path("to/d")), "cd");
}

TEST_F(Sets, OnesOfAnEarlierBuildAreSets) {
  for (const char* branch : {"a", "b"}) {
    must({"import", s(), branch, file("x", branch)});
    must({"snapshot", s(), std::string("all+2+") + branch, branch});
  }
  EXPECT_EQ(lines_with(log(), "2 members"), 1U) << log();
  fs::create_directory(path("to"));
  must({"restore", s(), "all", path("to")});
  EXPECT_EQ(read_file(path("to/a")) + read_file(path("to/b")), "ab");
}

TEST_F(VersionNames, CommandsOfOtherProgramsHaveAHint) {
  const std::pair<const char*, const char*> hints[] = {
      {"check", "vellum verify"},     {"prune", "vellum gc"},      {"status", "vellum log"},
      {"checkout", "vellum restore"}, {"commit", "vellum backup"}, {"add", "vellum backup"},
      {"extract", "vellum export"},   {"info", "vellum show"},     {"revert", "vellum restore"},
      {"undo", "vellum restore"},     {"create", "vellum init"},   {"rename", "vellum branch"}};
  for (const auto& [command, hint] : hints) {
    const Result result = run({command, "x"});
    EXPECT_EQ(result.status, 2) << command;
    EXPECT_NE(result.err.find(hint), std::string::npos) << command << ": " << result.err;
  }
}

// A file that ends within a page has its own size in every list; its region has whole pages.
TEST_F(VersionNames, ListsHaveTheSizeOfTheFile) {
  const std::string store = path("s");
  must({"import", store, "main", file("f", std::string(5000, 'x')), "--snapshot", "v1"});
  for (const char* command : {"log", "ls", "show", "snapshot"}) {
    Arguments arguments = {command, store};
    if (command == std::string("show")) arguments.push_back("v1");
    EXPECT_NE(must(arguments).out.find("4.9 KiB"), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace vellum::cli_test
