// vellum run --version: the program reads the version, and changes nothing in the file's directory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RunOldVersionNoSanitizer : public CliTest {
 protected:
  RunOldVersionNoSanitizer() {
    fs::create_directory(directory());
    fs::create_symlink("file", directory() + "/alias");
    write_file(directory() + "/file", "old");
    must({"import", make_store(), "main", directory() + "/file", "--snapshot", "then"});
    write_file(directory() + "/file", "new");
    write_file(directory() + "/other", "other");
  }
  std::string directory() const { return path("directory"); }

  // Everything there that a call could have changed.
  std::string state() const {
    std::ostringstream out;
    for (const auto& entry : fs::directory_iterator(directory())) {
      struct stat status;
      EXPECT_EQ(0, lstat(entry.path().c_str(), &status));
      out << entry.path().filename() << " inode " << status.st_ino << " mode " << status.st_mode
          << " links " << status.st_nlink << " user " << status.st_uid << " changed "
          << status.st_ctim.tv_sec << "." << status.st_ctim.tv_nsec << " holds "
          << (entry.is_regular_file() ? read_file(entry.path().string()) : "") << "\n";
    }
    return out.str();
  }

  void expect_nothing_changes(const std::string& scenario) const {
    const std::string before = state(), data = directory() + "/file";
    const Arguments command{"run",       "--store", path("store"), "--file",           data,
                            "--version", "then",    "--",          VELLUM_OLD_VERSION, scenario,
                            directory()};
    const auto opens_file = [&] { ::dup2(::open(data.c_str(), O_RDONLY), STDIN_FILENO); };
    const Result result = run(command, opens_file);
    EXPECT_EQ(0, result.status) << scenario << ": " << result.err;
    EXPECT_EQ(before, state()) << scenario;
  }
};

TEST_F(RunOldVersionNoSanitizer, NoCallChangesTheExistingFile) { expect_nothing_changes("there"); }

TEST_F(RunOldVersionNoSanitizer, NoCallCreatesTheMissingFile) {
  fs::remove(directory() + "/file");
  expect_nothing_changes("gone");
}

TEST_F(RunOldVersionNoSanitizer, CompanionFilesAreNotChanged) {
  write_file(directory() + "/file-wal", "of the program that writes the file");
  write_file(directory() + "/file-second", "another's");
  expect_nothing_changes("beside");
}

// Go's note counts only if the library could be loaded.
TEST_F(RunOldVersionNoSanitizer, AProgramThatWouldBypassTheVersionIsNotStarted) {
  const std::string before = state(), data = directory() + "/file";
  const std::pair<const char*, const char*> programs[] = {
      {VELLUM_RAW_CALLS, "is a Go program"},
      {VELLUM_STATIC_GO, "is statically linked"},
      {VELLUM_STATIC_PROGRAM, "is statically linked"}};
  for (const auto& [program, reason] : programs) {
    expect_failure({"run", "--store", path("store"), "--file", data, "--version", "then", "--",
                    program, data, "written"},
                   12, "unsupported", reason);
    EXPECT_EQ(before, state()) << program;
  }
}

// A shell can still start it: it is reported.
TEST_F(RunOldVersionNoSanitizer, AProgramThatBypassesTheVersionIsReported) {
  const std::string data = directory() + "/file";
  for (const char* program : {VELLUM_RAW_CALLS, VELLUM_STATIC_GO}) {
    const Result result = run({"run", "--store", path("store"), "--file", data, "--version", "then",
                               "--", "sh", "-c", std::string(program) + " " + data + "; true"});
    EXPECT_EQ(0, result.status) << result.err;
    EXPECT_TRUE(contains(result.err, std::string("vellum run: ") + program + " is ")) << result.err;
    EXPECT_TRUE(contains(result.err, "it sees the file itself, and not the version")) << result.err;
  }
}

TEST_F(RunOldVersionNoSanitizer, AMissingTemporaryDirectoryIsNamed) {
  static char variable[] = "TMPDIR=/no/such";
  const Result result = run({"run", "--store", path("store"), "--file", directory() + "/file",
                             "--version", "then", "--", "true"},
                            [] { ::putenv(variable); });
  EXPECT_EQ(3, result.status);
  EXPECT_TRUE(contains(result.err, "TMPDIR=/no/such")) << result.err;
}

// SQLite recovers from a journal, and removes it: a journal of another time would corrupt the
// database.
TEST_F(RunOldVersionNoSanitizer, AnExistingJournalIsNotAppliedToTheVersion) {
  if (run_program({"sqlite3", "-version"}).status != 0) GTEST_SKIP() << "no sqlite3 here";
  const std::string data = directory() + "/db", store = path("store");
  const auto sql = [&](const char* text) {
    const Result result = run_program({"sqlite3", data, text});
    EXPECT_EQ(0, result.status) << result.err;
  };
  sql("pragma journal_mode=persist; create table t(x); insert into t values ('then')");
  must({"import", store, "db", data, "--snapshot", "db-then"});
  sql("pragma journal_mode=wal; delete from t; insert into t values ('now')");
  write_file(data + "-wal", "of now");
  const std::string before = state();
  const Result old = run({"run", "--store", store, "--file", data, "--version", "db-then", "--",
                          "sqlite3", data, "select x from t"});
  EXPECT_EQ("then\n", old.out) << old.err;
  EXPECT_EQ(before, state());
}

}  // namespace
}  // namespace vellum::cli_test
