// vellum run: a file that is opened, appended to and closed again and again is committed once
// (programs/appends.c), and each close(2) still has happened or not after a kill.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <sstream>
#include <thread>
#include <vellum/store.hpp>

#include "format/image_tail.hpp"
#include "run/run_lib.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RunAppendsNoSanitizer : public CliTest {
 protected:
  std::string data() const { return path("data"); }
  Arguments command(const Arguments& program) const {
    Arguments all{"--json", "run",  "--strict", "--store",     path("store"),
                  "--file", data(), "--",       VELLUM_APPENDS};
    all.insert(all.end(), program.begin(), program.end());
    return all;
  }
  // Returns the number of commits, without that of the new file.
  std::uint64_t commits_of(const std::string& scenario) const {
    const Result result = run(command({scenario, data()}));
    EXPECT_EQ(0, result.status) << scenario << ": " << result.err;
    expect_version_of_file();
    return result.json().at("commits").get<std::uint64_t>() - 1;
  }
  void expect_version_of_file() const {
    fs::remove(path("exported"));
    must({"export", path("store"), "main", path("exported")});
    EXPECT_EQ(read_file(data()), read_file(path("exported")));
  }
  // The program has killed itself and its run.
  void run_until_both_are_killed(const Arguments& program) const {
    EXPECT_EQ(SIGKILL, run(command(program)).signal);
  }
  void open_again() const {
    must({"run", "--store", path("store"), "--file", data(), "--", "true"});
    expect_version_of_file();
  }
  std::string tail() const { return path("store/branches/main/image.tail"); }
  static std::string rounds(int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += "000000" + std::to_string(i) + "\n";
    return out;
  }
};

// On a busy machine the rounds may take longer than a commit is delayed.
TEST_F(RunAppendsNoSanitizer, ManyRoundsAreOneCommit) {
  const std::uint64_t commits = commits_of("rounds");
  EXPECT_GE(commits, 1U);
  EXPECT_LE(commits, 10U) << "56 rounds";
}

TEST_F(RunAppendsNoSanitizer, ASynchronousAppendIsACommit) {
  EXPECT_EQ(8U, commits_of("rounds-dsync"));
}

TEST_F(RunAppendsNoSanitizer, OtherChangesAreCommittedAtClose) { commits_of("other-ways"); }
TEST_F(RunAppendsNoSanitizer, EveryReadSeesTheBytes) { commits_of("reads"); }
TEST_F(RunAppendsNoSanitizer, ChildrenCanAppend) { commits_of("children"); }
TEST_F(RunAppendsNoSanitizer, OtherProcessesCanAppend) { commits_of("siblings"); }

TEST_F(RunAppendsNoSanitizer, ProcessesOutsideTheRunCanAppend) { commits_of("outside"); }
TEST_F(RunAppendsNoSanitizer, AForkWaitsForTheCommitOfAClosedFile) { commits_of("forks"); }

TEST_F(RunAppendsNoSanitizer, TwoProcessesCanAppendByTurns) { commits_of("rivals"); }

TEST_F(RunAppendsNoSanitizer, NamesCanChange) {
  for (const char* scenario : {"names", "replaced"}) {
    for (const char* name : {"store", "data"}) fs::remove_all(path(name));
    const Result result = run(command({scenario, data()}));
    EXPECT_EQ(0, result.status) << scenario << ": " << result.err;
    expect_version_of_file();
  }
}

TEST_F(RunAppendsNoSanitizer, TheFileKeepsTheTimesThatTheProgramSets) {
  commits_of("times");
  EXPECT_EQ("one two ", read_file(data()));
  const auto time = fs::last_write_time(data());
  EXPECT_EQ(1000, std::chrono::duration_cast<std::chrono::seconds>(
                      fs::file_time_type::clock::to_sys(time).time_since_epoch())
                      .count());
}

TEST_F(RunAppendsNoSanitizer, AKillLeavesWhatWasClosed) {
  run_until_both_are_killed({"killed", data()});
  EXPECT_EQ("0000000\n" + rounds(5), read_file(data()));
  open_again();
  EXPECT_EQ("0000000\n" + rounds(5), read_file(data()));
}

TEST_F(RunAppendsNoSanitizer, AnyOpeningKeepsWhatWasClosed) {
  run_until_both_are_killed({"killed", data()});
  const std::string all = "0000000\n" + rounds(5);
  // A writer without the image would hide it.
  expect_failure({"import", path("store"), "main", file("other", "other")}, 7, "busy", data());
  must({"restore", path("store"), "main", path("restored")});
  must({"backup", path("store"), data(), "--name", "kept"});
  EXPECT_EQ(all, read_file(data()));
  open_again();
  EXPECT_EQ(all, read_file(data()));
}

// The record as of another boot of the machine.
std::string of_another_boot(const std::string& record, const std::string& store) {
  const format::Uuid id =
      store::StoreDirectory::open(base::posix_fs(), store)->superblock().store_id;
  format::ImageTail tail;
  EXPECT_TRUE(format::decode_image_tail(std::as_bytes(std::span(record)), id, tail));
  ++tail.boot;
  const auto bytes = format::encode_image_tail(tail, id);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// After a power failure the medium may have any part: nothing that no commit has is used. The record
// may be missing, have a wrong bit, or be whole.
TEST_F(RunAppendsNoSanitizer, APowerFailureLeavesTheLastCommit) {
  for (const char* left : {"nothing", "a wrong bit", "the whole record"}) {
    for (const char* name : {"store", "data"}) fs::remove_all(path(name));
    run_until_both_are_killed({"killed", data()});
    std::string record = read_file(tail());
    fs::remove(tail());
    if (left == std::string("a wrong bit")) {
      record.at(56) = static_cast<char>(record.at(56) ^ 1);
      write_file(tail(), record);
    } else if (left == std::string("the whole record")) {
      write_file(tail(), of_another_boot(record, path("store")));
    }
    open_again();
    EXPECT_EQ("0000000\n", read_file(data())) << left;
  }
}

TEST_F(RunAppendsNoSanitizer, AChangeAroundTheLibraryIsNotTakenForTheProgramsBytes) {
  run_until_both_are_killed({"changed-around", data()});
  open_again();
  EXPECT_EQ("0000000\n", read_file(data()));
}

// Runs the scenario, which ends with a kill, and opens the files again.
class RunAppendsToTwoNoSanitizer : public RunAppendsNoSanitizer {
 protected:
  void run_and_open_again(const std::string& scenario, bool power_fails) const {
    const Arguments all{"run", "--store", path("store"), "--file", path("*.db"), "--"};
    Arguments program = all;
    program.insert(program.end(), {VELLUM_APPENDS, scenario, first_, second_});
    EXPECT_EQ(SIGKILL, run(program).signal);
    if (power_fails)
      for (const auto& entry : fs::directory_iterator(path("store/branches")))
        fs::remove(entry.path() / "image.tail");
    program = all;
    program.push_back("true");
    must(program);
  }

  const std::string first_ = path("a.db"), second_ = path("b.db");
};

// A file that its program has closed, and keeps for a later commit while it uses another one.
class RunKeepsNoSanitizer : public CliTest {
 protected:
  void SetUp() override {
    running_ = fork();
    if (running_ == 0)
      become_vellum({"run", "--store", path("store"), "--file", kept_, "--file", path("other"),
                     "--", VELLUM_APPENDS, "kept-beside", kept_, path("other"), path("end")});
    for (int i = 0; i < 3000 && !is_kept(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(is_kept());
  }
  ~RunKeepsNoSanitizer() override {
    write_file(path("end"), "");
    int status = 0;
    EXPECT_EQ(running_, waitpid(running_, &status, 0));
    EXPECT_EQ(0, status);
  }
  bool is_kept() const {
    std::error_code none;
    const std::string tail = path("store/branches/kept/image.tail");
    return fs::exists(tail, none) && fs::file_size(tail, none) != 0;
  }

  const std::string kept_ = path("kept");

 private:
  pid_t running_ = 0;
};

TEST_F(RunKeepsNoSanitizer, ABackupAsksForIt) {
  must({"backup", path("store"), kept_, "--name", "backup"});
  EXPECT_EQ("0000000\nkept", must({"cat", path("store"), "backup"}).out);
  EXPECT_EQ("0000000\nkept", must({"cat", path("store"), "kept"}).out) << "the run's commit";
}

TEST_F(RunKeepsNoSanitizer, ARestoreAsksForIt) {
  write_file(path("new"), "new");
  must({"import", path("store"), "new", path("new")});
  must({"restore", path("store"), "new", kept_});
  EXPECT_EQ("new", read_file(kept_));
  EXPECT_EQ("0000000\nkept", must({"cat", path("store"), "kept"}).out);
}

TEST_F(RunKeepsNoSanitizer, AnotherRunAsksForIt) {
  must({"run", "--store", path("store"), "--file", kept_, "--branch", "kept", "--", "true"});
  EXPECT_EQ("0000000\nkept", must({"cat", path("store"), "kept"}).out);
}

// The commit of the other file may refer to the appended bytes.
TEST_F(RunAppendsToTwoNoSanitizer, AFlushOfAnotherFileCommitsTheAppendedBytesFirst) {
  run_and_open_again("before-flush", true);
  EXPECT_EQ("0000000\nappended", read_file(first_));
  EXPECT_EQ("made flushed", read_file(second_));
}

// The appended bytes may refer to the other file.
TEST_F(RunAppendsToTwoNoSanitizer, ACloseKeepsWhatWasWrittenBeforeIt) {
  run_and_open_again("before-close", false);
  EXPECT_EQ("0000000\none two", read_file(first_));
  EXPECT_EQ("MADE appended", read_file(second_));
}

TEST_F(RunAppendsNoSanitizer, WithoutTheStoreTheBytesStayInTheFile) {
  for (const char* scenario : {"without-store", "without-store-killed"}) {
    for (const char* name : {"store", "data"}) fs::remove_all(path(name));
    const Result result = run(command({scenario, data(), path("store")}));
    EXPECT_EQ(std::string(scenario) == "without-store" ? 0 : 128 + SIGKILL, result.status)
        << result.err;
    EXPECT_EQ("0000000\n" + rounds(3), read_file(data()));
    expect_version_of_file();
  }
}

// The rounds of programs/appends.c, killed at each of their system calls after the first one, or at
// every Nth: VELLUM_RUN_KILLS.
TEST_F(RunAppendsNoSanitizer, AKillAtAnySystemCallLeavesWholeRounds) {
  const char* const every = std::getenv("VELLUM_RUN_KILLS");
  fs::create_directory(path("d"));
  const std::string pattern = path("d") + "/*.db";
  const Result result =
      run({"run", "--strict", "--store", path("store"), "--file", pattern, "--", VELLUM_APPENDS,
           "kills", path("d"), "1", every != nullptr ? every : "9"});
  ASSERT_EQ(0, result.status) << result.err;
  const Store store = Store::open(path("store"));
  int files = 0;
  std::istringstream lines(result.out);
  for (int calls = 0, acknowledged = 0; lines >> calls >> acknowledged; ++files) {
    const std::string content = read_file(path("d") + "/" + std::to_string(calls) + ".db");
    const auto count = static_cast<int>(content.size() / 8);
    EXPECT_EQ(rounds(count), content) << calls;
    EXPECT_TRUE(count == acknowledged || count == acknowledged + 1)
        << count << " of " << acknowledged << " after " << calls;
  }
  EXPECT_GT(files, 3);
  int versions = 0;
  for (const VersionInfo& version : store.versions()) {
    const auto image = version.is_branch ? store.branch_image(version.name) : std::nullopt;
    if (!image) continue;
    ++versions;
    fs::remove(path("exported"));
    must({"export", path("store"), version.name, path("exported")});
    EXPECT_EQ(read_file(image->path), read_file(path("exported"))) << image->path;
  }
  EXPECT_EQ(files, versions);
}

}  // namespace
}  // namespace vellum::cli_test
