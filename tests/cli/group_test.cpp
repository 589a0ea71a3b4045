// vellum group: versions of many stores.
#include <vellum/store.hpp>

#include "group/remote/object_versions.hpp"
#include "run/run_lib.hpp"
#include "support/one_process_group.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class GroupCommands : public CliTest {
 protected:
  // Versions 1 (the job's first), 2 ("one") and 3, of three partitions.
  std::string three_versions() const {
    test::OneProcess group(directory_.string());
    group.set(1);
    group.job().snapshot("one", "the first\nof them");
    group.set(2);
    group.job().snapshot("", "and more");
    return path("records");
  }
};

TEST_F(GroupCommands, LogAndShowPrintTheVersions) {
  const std::string records = three_versions();
  const auto log = must({"group", "log", records, "--json"}).json().at("versions");
  ASSERT_EQ(log.size(), 2u) << "the first has gone with the next";
  EXPECT_EQ(log.at(0).at("number"), 3);
  EXPECT_EQ(log.at(1).at("name"), "one");
  EXPECT_EQ(log.at(1).at("partitions"), 3);
  const std::string text = must({"group", "log", records}).out;
  EXPECT_EQ(lines_of(text).size(), 3u);
  EXPECT_TRUE(contains(text, "and more"));

  const auto shown = must({"group", "show", records, "one", "--json"}).json();
  EXPECT_EQ(shown.at("message"), "the first\nof them");
  EXPECT_EQ(shown.at("partitions").size(), 3u);
  EXPECT_EQ(shown.at("partitions").at(2).at("branch"), "main");
  EXPECT_EQ(must({"group", "show", records, "--json"}).json().at("number"), 3);
  EXPECT_TRUE(contains(must({"group", "show", records, "2"}).out, "3 partitions"));
  // The next job begins with another version.
  {
    test::OneProcess again(directory_.string());
  }
  EXPECT_TRUE(contains(must({"group", "log", records}).out, "a job began here"));
}

TEST_F(GroupCommands, VerifyReportsMissingParts) {
  const std::string records = three_versions();
  EXPECT_EQ(must({"group", "verify", records, "--read-data", "--json"}).json().at("ok"), true);
  fs::rename(path("store-1"), path("moved-1"));
  const Result text = run({"group", "verify", records});
  EXPECT_EQ(text.status, 11);
  EXPECT_TRUE(contains(text.out, "version 2, partition 1"));
  EXPECT_TRUE(contains(text.out, "0 of 2 versions are complete"));
  const Result json = run({"group", "verify", records, "--json"});
  EXPECT_EQ(json.json().at("problems").size(), 2u);
  EXPECT_EQ(json.json().at("error").at("code"), "corrupted");
  for (int p : {0, 2}) {
    fs::rename(path("store-" + std::to_string(p)), path("moved-" + std::to_string(p)));
  }
  must({"group", "verify", records, "--stores", path("moved-{}")});
}

TEST_F(GroupCommands, ExportWritesEachPartition) {
  const std::string records = three_versions();
  must({"group", "export", records, "one", path("out")});
  for (int p = 0; p < 3; ++p) {
    const std::string bytes = read_file(path("out/partition-" + std::to_string(p)));
    ASSERT_EQ(bytes.size(), test::OneProcess::kPartitionBytes);
    EXPECT_EQ(bytes.substr(0, 8), std::string("\1\0\0\0\0\0\0\0", 8));
  }
  expect_failure({"group", "export", records, "one", path("out")}, 4, "already_exists",
                 "partition-0");
}

TEST_F(GroupCommands, RmRemovesAVersionAndGcFreesIt) {
  const std::string records = three_versions();
  must({"group", "rm", records, "one"});
  const auto dry = must({"group", "gc", records, "--dry-run", "--json"}).json();
  EXPECT_EQ(dry.at("snapshots_removed"), 3);
  const auto done = must({"group", "gc", records, "--json"}).json();
  EXPECT_EQ(done.at("snapshots_removed"), 3);
  EXPECT_EQ(done.at("stores"), 3);
  EXPECT_TRUE(contains(must({"group", "gc", records}).out, "removed 0 records and 0 snapshots"));
  must({"group", "verify", records});
  test::OneProcess group(directory_.string());
  EXPECT_EQ(group.word(2), 2u);
  expect_failure({"group", "gc", records}, 7, "busy", "another job");
  expect_failure({"group", "rm", records, "absent"}, 7, "busy", "another job");
}

// A lost store, and lost records.
TEST_F(GroupCommands, RestoreFetchesAVersionFromTheRemote) {
  const std::string records = path("records"), url = "file://" + path("remote");
  fs::create_directory(path("remote"));
  {
    test::OneProcess group(directory_.string(), "", "records",
                           std::make_shared<group::ObjectVersions>(base::posix_fs(), url));
    group.set(1);
    group.job().snapshot("one", "");
    group.job().finish_push(group.job().push_async(""));
    group.set(2);
    group.job().snapshot("", "");
    expect_failure({"group", "restore", records, url}, 7, "busy", "another job");
  }
  fs::remove_all(path("store-1"));
  const auto done = must({"group", "restore", records, url, "--json"}).json();
  EXPECT_EQ(done.at("name"), "one");
  EXPECT_EQ(done.at("partitions_fetched"), 1);
  fs::remove_all(records);
  const Result text = must({"group", "restore", records, url, "one", "--stores", path("store-{}")});
  EXPECT_TRUE(contains(text.out, "fetched 0 partitions")) << text.out;
  must({"group", "verify", records, "--read-data"});
  test::OneProcess group(directory_.string());
  EXPECT_EQ(group.word(1), 1u);
}

// The versions that are complete at the remote, without records and stores.
TEST_F(GroupCommands, LogShowAndVerifyWorkOnAUrl) {
  const std::string url = "file://" + path("remote");
  fs::create_directory(path("remote"));
  {
    test::OneProcess group(directory_.string(), "", "records",
                           std::make_shared<group::ObjectVersions>(base::posix_fs(), url));
    group.set(1);
    group.job().snapshot("one", "the first");
    group.job().finish_push(group.job().push_async(""));
    group.set(2);
    group.job().snapshot("two", "");  // only in the stores
  }
  fs::remove_all(path("records"));
  for (int p = 0; p < 3; ++p) fs::remove_all(path("store-" + std::to_string(p)));
  const auto log = must({"group", "log", url, "--json"}).json().at("versions");
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log.at(0).at("name"), "one");
  const auto shown = must({"group", "show", url, "one", "--json"}).json();
  EXPECT_EQ(shown.at("partitions").at(2).at("store"), url + "/partition-2");
  const auto verified = must({"group", "verify", url, "--read-data", "--json"}).json();
  EXPECT_EQ(verified.at("complete"), 1);
  EXPECT_EQ(verified.at("stores"), 3);
  must({"group", "export", url, "one", path("out")});
  EXPECT_EQ(read_file(path("out/partition-2")).substr(0, 2), std::string("\1\0", 2));

  fs::rename(path("remote/partition-1"), path("moved"));
  const Result text = run({"group", "verify", url});
  EXPECT_EQ(text.status, 11);
  EXPECT_TRUE(contains(text.out, "partition 1")) << text.out;
  expect_failure({"group", "show", url, "two"}, 3, "not_found", "two");
  expect_failure({"group", "show", url, "--stores", path("store-{}")}, 2, "invalid_argument",
                 "below the URL");
  expect_failure({"group", "gc", url}, 2, "invalid_argument", "only read");
  expect_failure({"group", "rm", url, "one"}, 2, "invalid_argument", "only read");
}

TEST_F(GroupCommands, BadInput) {
  const std::string records = three_versions();
  expect_failure({"group"}, 2, "invalid_argument", "");
  expect_failure({"group", "show"}, 2, "invalid_argument", "RECORDS");
  expect_failure({"group", "gc"}, 2, "invalid_argument", "RECORD_DIR");
  expect_failure({"group", "export", records, "one"}, 2, "invalid_argument", "DIR");
  expect_failure({"group", "restore", records}, 2, "invalid_argument", "URL");
  expect_failure({"group", "restore", records, "nowhere"}, 2, "invalid_argument", "nowhere");
  expect_failure({"group", "restore", records, "file://" + path("nowhere")}, 3, "not_found",
                 "no version of a group");
  expect_failure({"group", "log", path("nowhere")}, 3, "not_found", "no group");
  expect_failure({"group", "show", records, "absent"}, 3, "not_found", "absent");
  expect_failure({"group", "rm", records, "3"}, 3, "not_found", "3");
  expect_failure({"group", "export", records, "one", path("a/b/c")}, 3, "not_found", "a/b/c");
  write_file(path("records/vellum.group"), "VLMGRUP\n");
  expect_failure({"group", "log", records}, 11, "corrupted", "vellum.group");
}

}  // namespace
}  // namespace vellum::cli_test
