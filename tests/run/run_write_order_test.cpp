// vellum run: the order of writes to several files, after a kill. A program's writes before it made
// another file durable are kept, as if the kernel had kept all writes (programs/write_order.c).
#include <signal.h>

#include <filesystem>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

// The file that shows that `second` has happened, and its first bytes then.
std::string file_after(const std::string& second) {
  if (second == "rename directory") return "second/MADE.db";
  return second == "open" || second == "rename" || second == "link" ? "SECOND.db" : "MADE.db";
}
std::string content_after(const std::string& second) {
  if (second == "open") return "";
  if (second.starts_with("rename") || second == "link") return "later";
  return second == "msync" ? "AFTER" : "after";
}

class RunWriteOrderNoSanitizer : public CliTest {
 protected:
  // A separate directory for each run.
  std::string directory() const { return path("d"); }
  std::string in_directory(const std::string& name) const { return directory() + "/" + name; }
  Result watched(const Arguments& arguments) const {
    for (const char* name : {"d", "store"}) fs::remove_all(path(name));
    fs::create_directory(directory());
    Arguments all = {"run", "--store",         path("store"), "--file", directory() + "/*.db",
                     "--",  VELLUM_WRITE_ORDER};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run(all);
  }
  void expect_first(const std::string& expected, const std::string& first,
                    const std::string& second) const {
    SCOPED_TRACE(first + ", " + second);
    const Result result = watched({first, directory(), second});
    EXPECT_EQ(128 + SIGKILL, result.status) << result.err;
    EXPECT_EQ(expected, read_file(in_directory("FIRST.db")));
    if (second != "unlink") {
      EXPECT_EQ(content_after(second), read_file(in_directory(file_after(second))).substr(0, 5));
    }
    EXPECT_EQ(second != "unlink" && second != "rename", fs::exists(in_directory("MADE.db")));
  }
};

TEST_F(RunWriteOrderNoSanitizer, WritesBeforeAFlushAreKept) {
  for (const char* second : {"fsync", "fdatasync", "O_DSYNC", "msync", "futimens"})
    expect_first("earlier", "write", second);
}

TEST_F(RunWriteOrderNoSanitizer, WritesBeforeACloseAreKept) {
  for (const char* second : {"close", "munmap"}) expect_first("earlier", "write", second);
}

TEST_F(RunWriteOrderNoSanitizer, WritesBeforeAChangeOfNamesAreKept) {
  for (const char* second : {"open", "rename", "link", "unlink", "rename directory"})
    expect_first("earlier", "write", second);
}

TEST_F(RunWriteOrderNoSanitizer, EveryCallThatWritesCounts) {
  expect_first("earlier", "ftruncate", "rename");
  expect_first(std::string("earlier\0\0", 9), "fallocate", "rename");
  expect_first("earlier", "write beside a mapping", "rename");
}

// A store waits for the flush of its own file, which makes it atomic.
TEST_F(RunWriteOrderNoSanitizer, AStoreIsCommittedByTheFlushOfItsOwnFile) {
  expect_first("flushed", "store", "rename");
}

TEST_F(RunWriteOrderNoSanitizer, FilesAreCommittedInTheOrderOfTheirFirstWrite) {
  const Result result = watched({"order", directory()});
  EXPECT_EQ(0, result.status) << result.err;
  EXPECT_EQ("c.db\na.db\nd.db\nb.db\n", result.out);
}

}  // namespace
}  // namespace vellum::cli_test
