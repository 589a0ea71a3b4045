// vellum run: an unmodified program (programs/file_calls.c) finds that its file behaves like a
// plain file, and leaves its last commit and every version.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include <vellum/region.hpp>
#include <vellum/store.hpp>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RunNoSanitizer : public CliTest {
 protected:
  std::string store() const { return path("store"); }
  std::string data() const { return path("data"); }
  Arguments command(const std::string& scenario, const Arguments& options = {}) const {
    Arguments out = {"run", "--store", store(), "--file", data()};
    out.insert(out.end(), options.begin(), options.end());
    for (const std::string& word :
         {std::string("--"), std::string(VELLUM_FILE_CALLS), scenario, data()})
      out.push_back(word);
    return out;
  }
  Result calls(const std::string& scenario, const Arguments& options = {}) const {
    return run(command(scenario, options));
  }
  void expect_status(int status, const std::string& scenario) const {
    const Result result = calls(scenario);
    EXPECT_EQ(status, result.status) << result.err;
    EXPECT_EQ(std::string::npos, result.err.find("another program")) << result.err;
  }
  // The branch's head in the store equals the file.
  void expect_file_is_head() const {
    const std::string exported = path("exported");
    fs::remove(exported);
    must({"export", store(), "main", exported});
    EXPECT_TRUE(read_file(exported) == read_file(data())) << fs::file_size(exported);
  }
  std::uint64_t commits() const {
    return must({"show", store(), "main", "--json"}).json().at("sequence");
  }
};

TEST_F(RunNoSanitizer, AFileBehavesAsWithoutVellum) {
  for (const char* scenario :
       {"coherent", "sizes", "by-number", "copies", "names", "holes", "exact-sizes",
        "cut-and-longer", "times", "threads", "forks", "hands-down", "streams"}) {
    const Result plain = run_program({VELLUM_FILE_CALLS, scenario, data()});
    EXPECT_EQ(0, plain.status) << "without Vellum: " << plain.err;
    const std::string content = read_file(data());
    const Result result = calls(scenario, {"--strict"});
    EXPECT_EQ(0, result.status) << scenario << ": " << result.err;
    EXPECT_TRUE(content == read_file(data())) << scenario;
    expect_file_is_head();
  }
}

TEST_F(RunNoSanitizer, AnOutsideWriterIsReportedOnce) {
  const Result result = calls("outsider");
  EXPECT_EQ(0, result.status) << result.err;
  const std::size_t reported = result.err.find(data() + ": another program");
  ASSERT_NE(std::string::npos, reported) << result.err;
  EXPECT_EQ(std::string::npos, result.err.find("another program", reported + data().size() + 10));
}

TEST_F(RunNoSanitizer, WritesAreInTheFileAfterTheEnd) {
  for (const char* scenario : {"kept", "kept-at-exit-now"}) {
    expect_status(0, scenario);
    EXPECT_EQ("not flushed", read_file(data()).substr(7, 11));
    EXPECT_EQ("nor this", read_file(data()).substr(100, 8));
    expect_file_is_head();
    fs::remove_all(store());
    fs::remove(data());
  }
  expect_status(128 + SIGKILL, "kept-by-close");
  EXPECT_EQ("closed", read_file(data()).substr(7, 6));
}

TEST_F(RunNoSanitizer, AKilledProgramLeavesItsLastCommit) {
  expect_status(128 + SIGKILL, "killed");
  EXPECT_EQ("first", read_file(data()).substr(0, 5));
  EXPECT_EQ("first", read_file(data()).substr(4096, 5));
  expect_file_is_head();
  expect_status(128 + SIGKILL, "killed-behind-a-synchronous-write");
  EXPECT_EQ("before", read_file(data()).substr(0, 6));
  EXPECT_EQ("with", read_file(data()).substr(100, 4));
  expect_status(128 + SIGKILL, "like-lmdb");
  EXPECT_EQ("flushed", read_file(data()).substr(2 * 4096, 7));
  EXPECT_EQ("synchronous", read_file(data()).substr(3 * 4096, 11));
  fs::remove_all(store());
  fs::remove(data());
  expect_status(128 + SIGKILL, "killed-before-a-commit");
  EXPECT_EQ("", read_file(data()));
}

TEST_F(RunNoSanitizer, UnsupportedOperationsAreRefused) {
  const Result result = calls("refused");
  EXPECT_EQ(128 + SIGKILL, result.status) << result.err;
  EXPECT_EQ("kept", read_file(data()).substr(0, 4)) << "its own descriptors are not the program's";
  EXPECT_NE(std::string::npos, result.err.find("only the parent may write it")) << result.err;

  EXPECT_NE(std::string::npos, result.err.find("this process may only read it")) << result.err;
  const Result stores = calls("stores-of-a-child");
  EXPECT_EQ(0, stores.status) << stores.err;
  EXPECT_NE(std::string::npos, stores.err.find(data() + ": was open before fork()")) << stores.err;

  expect_status(0, "unseen");
  EXPECT_EQ("written", read_file(data()));

  expect_failure({"run", "--store", store(), "--file", data(), "--", VELLUM_STATIC_PROGRAM}, 12,
                 "unsupported", "statically linked");
  expect_failure({"run", "--store", store(), "--file", data(), "--", "no-such-program"}, 3,
                 "not_found", "no-such-program");
  expect_failure({"run", "--store", store(), "--file", data()}, 2, "invalid_argument", "a program");
  expect_failure({"run", "--store", store(), "--file", path(""), "--", "true"}, 2,
                 "invalid_argument", "not a regular file");
}

TEST_F(RunNoSanitizer, OtherFilesAndStatusesAreTheProgramsOwn) {
  const Result result = run({"run", "--store", store(), "--file", data(), "--", "sh", "-c",
                             "echo -n out; echo -n err >&2; exit 5"});
  EXPECT_EQ(5, result.status);
  EXPECT_EQ("out", result.out);
  EXPECT_EQ(0U, result.err.find("errvellum: 0 files, 0 commits")) << result.err;
  EXPECT_FALSE(fs::exists(data()));
}

// As under a daemon. The summary is for a person; a message that cannot be printed is no error.
TEST_F(RunNoSanitizer, TheStatusDoesNotDependOnStandardError) {
  const auto closed = [] { ::close(STDERR_FILENO); };
  const auto full = [] { ::dup2(::open("/dev/full", O_WRONLY), STDERR_FILENO); };
  for (const InChild& in_child : {InChild(closed), InChild(full)}) {
    for (const int status : {0, 3}) {
      const Result result = run({"run", "--store", store(), "--file", data(), "--", "sh", "-c",
                                 "echo x >>" + data() + "; exit " + std::to_string(status)},
                                in_child);
      EXPECT_EQ(status, result.status) << result.out;
    }
    EXPECT_EQ(7, run({"run", "--store", store(), "--file", path("misspelt"), "--branch", "other",
                      "--", "sh", "-c", "exit 7"},
                     in_child)
                     .status);
  }
  EXPECT_EQ("x\nx\nx\nx\n", read_file(data()));
}

TEST_F(RunNoSanitizer, AnExistingFileIsTheFirstVersion) {
  write_file(data(), "content of an odd size");
  must({"run", "--store", store(), "--file", data(), "--", "true"});
  must({"snapshot", store(), "before"});
  EXPECT_EQ(0, calls("kept").status);
  must({"export", store(), "before", path("was")});
  EXPECT_EQ("content of an odd size", read_file(path("was")));
  write_file(data(), "changed by somebody else");
  must({"run", "--store", store(), "--file", data(), "--", "true"});
  expect_file_is_head();
  EXPECT_EQ("changed by somebody else", read_file(data()));
  fs::remove(data());
  must({"run", "--store", store(), "--file", data(), "--", "true"});
  EXPECT_EQ("changed by somebody else", read_file(data())) << "made again";
}

TEST_F(RunNoSanitizer, KeepsEveryNthCommit) {
  EXPECT_EQ(0, calls("hundred-commits", {"--snapshot-every-commits", "30"}).status);
  const std::string kept = must({"snapshot", store(), "--names"}).out;
  EXPECT_EQ("main-00000091\nmain-00000061\nmain-00000031\n", kept) << "the first is empty";
  EXPECT_EQ(61, must({"show", store(), "main-00000061", "--json"}).json().at("sequence"));
}

// From another process, while it runs; by signal; and an old version concurrently with the live
// one.
TEST_F(RunNoSanitizer, VersionsAreKeptAndReadWhileTheProgramRuns) {
  int to_program[2], from_program[2];
  ASSERT_EQ(0, pipe(to_program) | pipe(from_program));
  const pid_t running = fork();
  if (running == 0) {
    dup2(to_program[0], 0);
    dup2(from_program[1], 1);
    close(to_program[1]);
    become_vellum(command("waits"));
  }
  close(to_program[0]);
  close(from_program[1]);
  char ready[6];
  ASSERT_EQ(6, read(from_program[0], ready, 6));
  must({"snapshot", store(), "outside"});
  kill(running, SIGUSR1);
  const auto kept = [&] { return must({"snapshot", store(), "--names"}).out.find("main-0"); };
  for (int i = 0; i < 500 && kept() == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_NE(std::string::npos, kept());
  const Result old = run(command("reads", {"--version", "outside"}));
  EXPECT_EQ(0, old.status) << old.err;
  EXPECT_EQ("waits\n", old.out);
  EXPECT_NE(std::string::npos, old.err.find("an old version can only be read")) << old.err;
  close(to_program[1]);
  int status = 0;
  waitpid(running, &status, 0);
  EXPECT_EQ(0, status);
  close(from_program[0]);
}

TEST_F(RunNoSanitizer, AFileRemovedByTheProgramIsNotRecreated) {
  EXPECT_EQ(0, calls("kept").status);
  must({"run", "--store", store(), "--file", data(), "--", "rm", data()});
  EXPECT_FALSE(fs::exists(data()));
  const std::string removes = "echo a > " + path("a.db") + "; rm " + path("a.db");
  const Result result = must(
      {"run", "--quiet", "--store", store(), "--file", path("*.db"), "--", "sh", "-c", removes});
  EXPECT_EQ("", result.err);
  EXPECT_FALSE(fs::exists(path("a.db")));
}

TEST_F(RunNoSanitizer, TheNameOfAnExistingFileIsNotAPattern) {
  const std::string name = file("a[1].db", "");
  must({"run", "--store", store(), "--file", name, "--", "sh", "-c", "echo -n one > " + name});
  must({"export", store(), "main", path("exported")});
  EXPECT_EQ("one", read_file(path("exported")));
}

// Killed while it opened a new file: the branch existed, but had no file recorded.
TEST_F(RunNoSanitizer, AnUnfinishedBranchGetsTheContentOfItsFile) {
  Store made = Store::create(store());
  for (const char* name : {"a.db", "b.db"}) {
    std::string branch = file(name, name[0] == 'a' ? "" : "content");
    std::replace(branch.begin(), branch.end(), '/', '+');
    const pid_t killed = fork();
    if (killed == 0) {
      const Region region = made.create_region(branch, 1);
      raise(SIGKILL);
    }
    waitpid(killed, nullptr, 0);
  }
  const Result result = run(
      {"run", "--store", store(), "--strict", "--file", path("*.db"), "--", "cat", path("a.db")});
  EXPECT_EQ(0, result.status) << result.err;
  for (const char* name : {"a.db", "b.db"}) {
    std::string branch = path(name);
    std::replace(branch.begin(), branch.end(), '/', '+');
    must({"export", store(), branch, path(std::string("exported-") + name)});
    EXPECT_EQ(read_file(path(name)), read_file(path(std::string("exported-") + name)));
  }
}

// Files that match a pattern are branches named by their paths.
TEST_F(RunNoSanitizer, PatternsMatchManyFiles) {
  for (const char* name : {"a.db", "b.db", "c.other"})
    EXPECT_EQ(0, run({"run", "--store", store(), "--file", path("*.db"), "--", VELLUM_FILE_CALLS,
                      "kept", path(name)})
                     .status);
  const std::string branches = must({"branch", store(), "--names"}).out;
  EXPECT_NE(std::string::npos, branches.find("+a.db\n")) << branches;
  EXPECT_NE(std::string::npos, branches.find("+b.db\n")) << branches;
  EXPECT_EQ(std::string::npos, branches.find("c.other")) << branches;
  EXPECT_EQ("not flushed", read_file(path("b.db")).substr(7, 11));
}

}  // namespace
}  // namespace vellum::cli_test
