// vellum restore of a set: all of its files, or none.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RestoreSet : public CliTest {
 protected:
  RestoreSet() { fs::create_directory(path("to")); }
  // A set of two branches.
  void keep(const std::string& first, const std::string& first_content, const std::string& second,
            const std::string& second_content) const {
    must({"import", s(), first, file("1", first_content)});
    must({"import", s(), second, file("2", second_content)});
    must({"snapshot", s(), "set", "--all"});
  }
  std::string s() const { return path("s"); }
  std::string in(const std::string& name) const { return read_file(path("to/" + name)); }
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(path("to")))
      out.insert(entry.path().filename().string());
    return out;
  }
};

// SQLite's log with a transaction, as far as the command looks.
std::string log_of(const std::string& text) {
  return "\x37\x7f\x06\x82" + std::string(40, ' ') + text;
}

bool has_leases(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool has = ::fcntl(file, F_SETLEASE, F_WRLCK) == 0;
  ::close(file);
  return has;
}

TEST_F(RestoreSet, ALogThatIsInTheSetNeedsNoForce) {
  keep("app.db", "old", "app.db-wal", log_of("old"));
  file("to/app.db", "new");
  file("to/app.db-wal", log_of("new"));
  must({"restore", s(), "set", path("to")});
  EXPECT_EQ(in("app.db"), "old");
  EXPECT_EQ(in("app.db-wal"), log_of("old"));
}

// A file whose name begins like a log's is not the log.
TEST_F(RestoreSet, ALogThatIsNotInTheSetIsRefused) {
  keep("app.db", "old", "app.db-old", "old");
  file("to/app.db", "new");
  file("to/app.db-wal", log_of("new"));
  const Result result = run({"restore", s(), "set", path("to")});
  EXPECT_EQ(result.status, 7) << result.out << result.err;
  EXPECT_EQ(in("app.db-wal"), log_of("new"));
  must({"restore", s(), "set", path("to"), "--force"});
  EXPECT_EQ(names(), (std::set<std::string>{"app.db", "app.db-old"}));
}

// The command takes a lease of each file twice: before it writes anything, and before it replaces
// the first.
TEST_F(RestoreSet, AFileThatIsOpenedMeanwhileIsRefusedNoSanitizer) {
  keep("app.db", "old", "app.db-wal", log_of("old"));
  file("to/app.db", "new");
  file("to/app.db-wal", log_of("new"));
  if (!has_leases(path("to/app.db"))) GTEST_SKIP() << "no leases here";
  for (const char* const opened : {"app.db", "app.db-wal"}) {
    const std::string target = path(std::string("to/") + opened);
    const Result result = run({"restore", s(), "set", path("to")}, [&] {
      ::setenv("LD_PRELOAD", VELLUM_CLOCK_BACK, 1);
      ::setenv("VELLUM_TEST_OPEN", target.c_str(), 1);
      ::setenv("VELLUM_TEST_LEASE", "3", 1);
    });
    EXPECT_EQ(result.status, 7) << result.out << result.err;
    EXPECT_TRUE(contains(result.err, target + ": a program has it open")) << result.err;
    EXPECT_EQ(in("app.db"), "new");
    EXPECT_EQ(in("app.db-wal"), log_of("new"));
  }
  EXPECT_EQ(names(), (std::set<std::string>{"app.db", "app.db-wal"}));
}

TEST_F(RestoreSet, NoSpaceForTheSecondFileLeavesTheFirst) {
  keep("a", "old", "b", noise(64, 1));
  file("to/a", "new");
  const Result result = run({"restore", s(), "set", path("to")}, [] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{16 << 10, 16 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_NE(result.status, 0) << result.out;
  EXPECT_EQ(in("a"), "new");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

// The file's current content becomes the branch's head, which is the version that is asked for.
TEST_F(RestoreSet, ABranchIsReadBeforeTheFilesContentIsCommitted) {
  file("to/db", "good");
  must({"init", s()});
  must({"attach", s(), "main", path("to/db")});
  file("to/db", "lost");
  must({"restore", s(), "main", path("to/db")});
  EXPECT_EQ(in("db"), "good");
  EXPECT_EQ(must({"cat", s(), "main"}).out, "lost");
}

// The branch has another head than the file, which nobody has changed.
TEST_F(RestoreSet, AnUnchangedFileIsNotWrittenBeforeItIsReplaced) {
  file("to/db", "old");
  must({"init", s()});
  must({"attach", s(), "main", path("to/db"), "--snapshot", "one"});
  must({"import", s(), "main", file("new", noise(4, 1))});
  const auto modified_ns = [&] {
    struct stat status{};
    ::stat(path("to/db").c_str(), &status);
    return status.st_mtim.tv_nsec;
  };
  const auto before = modified_ns();
  const Result result = run({"restore", s(), "main", path("to/db")}, [] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4 << 10, 4 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_NE(result.status, 0) << result.out;
  EXPECT_EQ(in("db"), "old");
  EXPECT_EQ(modified_ns(), before);
  must({"restore", s(), "main", path("to/db")});
  EXPECT_EQ(in("db"), noise(4, 1));
}

}  // namespace
}  // namespace vellum::cli_test
