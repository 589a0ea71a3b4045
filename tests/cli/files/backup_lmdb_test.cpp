// vellum backup of an LMDB file while programs write it, by themselves and under vellum run.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

// Runs lmdb_writer.c until it is killed; when the constructor returns, it has flushed at least
// once.
class Writer {
 public:
  explicit Writer(const Arguments& command) {
    int flushed[2];
    EXPECT_EQ(0, pipe(flushed));
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // a writer under vellum run becomes this process's child
    process_ = fork();
    if (process_ == 0) {
      setpgid(0, 0);
      dup2(flushed[1], 1);
      close(flushed[0]);
      become_program(command);
    }
    setpgid(process_, process_);
    close(flushed[1]);
    flushed_ = flushed[0];
    last();
  }
  ~Writer() {
    kill(-process_, SIGKILL);
    close(flushed_);
    while (waitpid(-process_, nullptr, 0) > 0) {  // until their locks are released, too
    }
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // The next transaction that it has flushed, in order. UINT64_MAX: it has ended.
  std::uint64_t last() const {
    std::uint64_t number = 0;
    const bool runs = read(flushed_, &number, 8) == 8;
    EXPECT_TRUE(runs);
    return runs ? number : UINT64_MAX;
  }

 private:
  pid_t process_ = -1;
  int flushed_ = -1;
};

// A program that links one version of LMDB.
struct LmdbProgram {
  const char* version;
  const char* path;  // empty: that version is not installed
};

class BackupLmdbNoSanitizer : public CliTest, public ::testing::WithParamInterface<LmdbProgram> {
 protected:
  void SetUp() override {
    if (*writer_path() == '\0') GTEST_SKIP() << "no LMDB " << GetParam().version << " (LMDB1_ROOT)";
  }
  static const char* writer_path() { return GetParam().path; }
  BackupLmdbNoSanitizer() { fs::create_directory(path("db")); }
  std::string store() const { return path("store"); }
  std::string file() const { return path("db/data.mdb"); }
  Arguments writer(const std::string& mode) const { return {writer_path(), mode, path("db")}; }
  Arguments under_run(const Arguments& command) const {
    Arguments out = {VELLUM_CLI, "run", "--store", store(), "--file", file(), "--"};
    out.insert(out.end(), command.begin(), command.end());
    return out;
  }
  nlohmann::json backup(const std::string& name) const { return backup_of(path("db"), name); }
  nlohmann::json backup_of(const std::string& environment, const std::string& name) const {
    return must({"backup", store(), environment, "--name", name, "--json"}).json();
  }
  // Checks that all its content is of one transaction, and returns its number.
  static std::uint64_t number_in(const std::string& directory) {
    const Result result = run_program({writer_path(), "check", directory});
    EXPECT_EQ(0, result.status) << result.err;
    return result.out.empty() ? 0 : std::stoull(result.out);
  }
  std::uint64_t number_of(const std::string& version) const {
    const std::string exported = path("exported");
    fs::remove(exported);
    must({"export", store(), version, exported});
    return number_in(exported);
  }
  void expect_each_is_of_one_transaction(const std::string& mode,
                                         const std::string& environment) const {
    const Writer running({writer_path(), mode, environment});
    std::uint64_t before = 1;
    for (const char* name : {"a", "b", "c"}) {
      backup_of(environment, name);
      const std::uint64_t number = number_of(name);
      EXPECT_GE(number, before);
      before = number + 1;
      while (running.last() <= number) {
      }
    }
    EXPECT_EQ(0, run({"verify", store(), "--read-data"}).status);
    expect_failure({"restore", store(), "a", environment}, 7, "busy", "program has it open");
  }
};

TEST_P(BackupLmdbNoSanitizer, EachBackupHasOneTransactionDuringWrites) {
  expect_each_is_of_one_transaction("safe", path("db"));
}

TEST_P(BackupLmdbNoSanitizer, EachBackupHasOneTransactionDuringWritesInTheFastestMode) {
  expect_each_is_of_one_transaction("write", path("db"));
}

// LMDB frees the slots of killed readers only on request.
TEST_P(BackupLmdbNoSanitizer, ABackupFreesTheSlotsOfDeadReaders) {
  const Writer running(writer("safe"));
  EXPECT_EQ(SIGKILL, run_program(writer("readers")).signal);
  backup("a");
  EXPECT_GE(number_of("a"), 1u);
}

// There LMDB takes no lock, and its writers may reuse pages that a reader still needs.
TEST_P(BackupLmdbNoSanitizer, ALiveEnvironmentOnAReadOnlyFileSystemIsRefused) {
  fs::create_directory(path("read-only"));
  const auto backup_there = [&](const char* name) {
    const std::string script =
        "mount --bind \"$1\" \"$2\" && mount -o remount,ro,bind \"$2\" || exit 99; "
        "exec \"$0\" backup \"$3\" \"$2\" --name \"$4\"";
    return run_program({"unshare", ::geteuid() == 0 ? "-m" : "-rm", "sh", "-c", script, VELLUM_CLI,
                        path("db"), path("read-only"), store(), name});
  };
  {
    const Writer running(writer("write"));
    const Result live = backup_there("a");
    if (live.status == 1 || live.status == 99) GTEST_SKIP() << "no mounts here";
    EXPECT_EQ(7, live.status) << live.err;
    EXPECT_NE(std::string::npos, live.err.find("read-only")) << live.err;
  }
  EXPECT_EQ(0, backup_there("b").status);
  EXPECT_EQ(number_in(path("db")), number_of("b"));
}

// Its lock file is next to the link, or next to the file.
TEST_P(BackupLmdbNoSanitizer, EachBackupOfALinkedFileHasOneTransaction) {
  fs::create_symlink("file", path("link"));
  expect_each_is_of_one_transaction("write", path("link"));
  EXPECT_TRUE(fs::exists(path("link-lock")));
  EXPECT_FALSE(fs::exists(path("file-lock")));
}

TEST_P(BackupLmdbNoSanitizer, TheLockFileOfALinkedFileIsFound) {
  fs::create_symlink("file", path("link"));
  const Writer running({writer_path(), "write", path("file")});
  backup_of(path("link"), "a");
  EXPECT_GE(number_of("a"), 1u);
}

TEST_P(BackupLmdbNoSanitizer, ASmallChangeTakesLittleSpaceAndIsRestored) {
  {
    const Writer running(writer("write"));
  }  // the lock file of killed processes is left
  const auto all = backup("a");
  const std::uint64_t number = number_in(path("db"));
  EXPECT_EQ(number, number_of("a"));
  EXPECT_EQ(0, run_program(writer("few")).status);
  const auto few = backup("b");
  EXPECT_EQ(number + 3, number_of("b"));
  EXPECT_LT(few.at("pages_changed"), 300);
  EXPECT_LT(few.at("bytes_written"), 100000);
  EXPECT_EQ(0, backup("c").at("pages_changed")) << "nothing was written";

  EXPECT_TRUE(fs::exists(path("db/lock.mdb")));
  must({"restore", store(), "a", path("db")});
  EXPECT_EQ(number, number_in(path("db")));
  EXPECT_EQ(0, run_program(writer("few")).status) << "goes on from it, beside the old lock file";
  EXPECT_EQ(number + 3, number_in(path("db")));
  must({"restore", store(), "b", file()});
  EXPECT_EQ(number + 3, number_in(path("db")));
}

TEST_P(BackupLmdbNoSanitizer, ABackupCreatesNoLockFile) {
  EXPECT_EQ(0, run_program(writer("few")).status);
  fs::remove(path("db/lock.mdb"));
  backup("a");
  EXPECT_FALSE(fs::exists(path("db/lock.mdb")));
  EXPECT_FALSE(fs::exists(file() + "-lock"));
  EXPECT_EQ(3u, number_of("a"));
}

// LMDB documents that it refuses a file of another format.
TEST_P(BackupLmdbNoSanitizer, AnotherVersionOfLmdbIsReportedAndAcceptedWhenStopped) {
  EXPECT_EQ(0, run_program(writer("few")).status);
  std::string bytes = read_file(file());
  const std::size_t version_at = GetParam().version == std::string("0_9") ? 20 : 28;
  for (const std::size_t meta : {std::size_t{0}, std::size_t{4096}}) bytes[meta + version_at] = 99;
  write_file(file(), bytes);
  const Arguments command = {"backup", store(), file(), "--name", "a"};
  expect_failure(command, 12, "unsupported", file());
  expect_failure(command, 12, "unsupported", "--stopped");
  Arguments stopped = command;
  stopped.push_back("--stopped");
  must(stopped);
  must({"export", store(), "a", path("exported")});
  EXPECT_TRUE(read_file(path("exported")) == bytes);
}

TEST_P(BackupLmdbNoSanitizer, ABackupUnderVellumRunIsRefusedUntilTheEnd) {
  {
    const Writer running(under_run(writer("write")));
    expect_failure({"backup", store(), file(), "--name", "a"}, 7, "busy",
                   "vellum snapshot " + store() + " a main");
    expect_failure({"backup", path("other"), file(), "--name", "a"}, 7, "busy", file());
    must({"snapshot", store(), "a"});
    expect_failure({"restore", store(), "a", file()}, 7, "busy", file());
    expect_failure({"restore", store(), "a", file(), "--force"}, 7, "busy", file());
  }
  // Killed with vellum run: the file may be older than its last commit, or a mix.
  backup("b");
  EXPECT_EQ(number_of("main"), number_of("b"));
  EXPECT_EQ(number_in(path("db")), number_of("b"));
}

// This also works after a crash, and the earlier content is in the history.
TEST_P(BackupLmdbNoSanitizer, TheNextRunContinuesFromTheRestoredContent) {
  EXPECT_EQ(0, run_program(under_run(writer("few"))).status);
  must({"snapshot", store(), "early"});
  for (const bool crash : {false, true}) {
    if (crash) {
      const Writer running(under_run(writer("write")));
    } else {
      EXPECT_EQ(0, run_program(under_run(writer("few"))).status);
      EXPECT_EQ(0, run_program(writer("few")).status) << "not under vellum run";
    }
    const std::string before = crash ? "after-crash" : "before";
    must({"restore", store(), "early", file()});
    must({"snapshot", store(), before});
    EXPECT_GE(number_of(before), crash ? 6u : 9u);
    EXPECT_EQ(3u, number_in(path("db")));
    EXPECT_EQ(0, run_program(under_run(writer("few"))).status);
    EXPECT_EQ(6u, number_in(path("db")));
    const std::string after = before + "-run";
    must({"snapshot", store(), after});
    EXPECT_EQ(6u, number_of(after));
  }
}

TEST_P(BackupLmdbNoSanitizer, ARemovedFileIsRestored) {
  EXPECT_EQ(0, run_program(under_run(writer("few"))).status);
  must({"snapshot", store(), "early"});
  EXPECT_EQ(0, run_program(under_run(writer("few"))).status);
  fs::remove(file());
  must({"restore", store(), "early", file()});
  EXPECT_EQ(0, run_program(under_run(writer("few"))).status);
  EXPECT_EQ(6u, number_in(path("db")));
}

// File and branch have both changed, in different ways.
TEST_P(BackupLmdbNoSanitizer, RestoreCommitsChangesThatNoRunRecorded) {
  EXPECT_EQ(0, run_program(under_run(writer("few"))).status);
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(0, run_program(writer("few")).status);
    if (*name == 'a') backup("a");
  }
  must({"restore", store(), "a", path("db")});
  must({"snapshot", store(), "b"});
  EXPECT_EQ(9u, number_of("b"));
  EXPECT_EQ(6u, number_in(path("db")));
  EXPECT_EQ(0, run_program(under_run(writer("few"))).status);
  EXPECT_EQ(9u, number_in(path("db")));
}

// File and branch have both changed then, in the same way.
TEST_P(BackupLmdbNoSanitizer, ABackupBetweenRunsDoesNotAffectTheNextRun) {
  EXPECT_EQ(0, run_program(under_run(writer("few"))).status);
  EXPECT_EQ(0, run_program(writer("few")).status);
  backup("a");
  EXPECT_EQ(0, run_program(under_run(writer("few"))).status);
  EXPECT_EQ(9u, number_in(path("db")));
}

INSTANTIATE_TEST_SUITE_P(Versions, BackupLmdbNoSanitizer,
                         ::testing::Values(LmdbProgram{"0_9", VELLUM_LMDB_WRITER},
                                           LmdbProgram{"1_0", VELLUM_LMDB1_WRITER}),
                         [](const auto& p) { return p.param.version; });

}  // namespace
}  // namespace vellum::cli_test
