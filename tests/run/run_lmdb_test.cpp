// LMDB under vellum run, in the mode in which a crash may otherwise corrupt it.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RunLmdbNoSanitizer : public CliTest {
 protected:
  RunLmdbNoSanitizer() { fs::create_directory(path("db")); }
  std::string file() const { return path("db/data.mdb"); }
  std::string checked_number() const {
    const Result result = run_program({VELLUM_LMDB_WRITER, "check", path("db")});
    EXPECT_EQ(0, result.status) << result.err;
    return result.out;
  }

  // Runs the writer, and kills it with `vellum run`, or by itself, after this time. Returns the
  // last transaction that it has flushed; 0: none.
  std::uint64_t killed_after(std::chrono::microseconds time, bool both,
                             const char* mode = "write") const {
    int flushed[2];
    EXPECT_EQ(0, pipe(flushed));
    const pid_t running = fork();
    if (running == 0) {
      setpgid(0, 0);
      dup2(flushed[1], 1);
      close(flushed[0]);
      become_vellum({"run", "--store", path("store"), "--file", file(), "--", VELLUM_LMDB_WRITER,
                     mode, path("db")});
    }
    setpgid(running, running);
    close(flushed[1]);
    std::uint64_t last = 0;
    const bool began = read(flushed[0], &last, 8) == 8;
    EXPECT_TRUE(began);
    std::this_thread::sleep_for(time);
    if (both) {
      kill(-running, SIGKILL);
    } else {
      kill(child_of(running), SIGKILL);
    }
    while (read(flushed[0], &last, 8) == 8) {
    }
    close(flushed[0]);
    int status = 0;
    waitpid(running, &status, 0);
    EXPECT_TRUE(both ? WIFSIGNALED(status) : WEXITSTATUS(status) == 128 + SIGKILL);
    return last;
  }
  // The content of the file after the next kill, and the last transaction that was flushed by then.
  std::pair<std::uint64_t, std::uint64_t> found_after_kill(std::chrono::microseconds time,
                                                           bool both, const char* mode) const {
    const std::uint64_t last = killed_after(time, both, mode);
    if (both) must({"run", "--store", path("store"), "--file", file(), "--", "true"});
    return {std::stoull(checked_number()), last};
  }
  std::uint64_t sequence() const {
    return must({"show", path("store"), "main", "--json"}).json().at("sequence");
  }
};

// VELLUM_LMDB_KILLS=1000 for a long run.
TEST_F(RunLmdbNoSanitizer, TheFileOpensAtACommitAfterEachKill) {
  const char* wanted = std::getenv("VELLUM_LMDB_KILLS");
  const int kills = wanted != nullptr ? std::atoi(wanted) : 12;
  std::mt19937 random(7);  // NOLINT: the same times each run
  for (int i = 0; i < kills && !HasFailure(); ++i) {
    const auto [found, last] =
        found_after_kill(std::chrono::microseconds(random() % 40000), i % 4 == 3, "write");
    EXPECT_TRUE(found == last || found == last + 3) << found << " behind " << last;
  }
}

// In its default mode LMDB flushes each transaction: any of the three that are under way.
TEST_F(RunLmdbNoSanitizer, TheFileOpensAtAFlushedTransaction) {
  std::mt19937 random(8);  // NOLINT: the same times each run
  for (int i = 0; i < 6 && !HasFailure(); ++i) {
    const auto [found, last] =
        found_after_kill(std::chrono::microseconds(random() % 40000), i % 4 == 3, "safe");
    EXPECT_TRUE(found >= last && found <= last + 3) << found << " behind " << last;
  }
}

TEST_F(RunLmdbNoSanitizer, ATransactionIsOneCommit) {
  const auto three = [&] {
    must({"run", "--store", path("store"), "--file", file(), "--", VELLUM_LMDB_WRITER, "few",
          path("db")});
  };
  three();
  const std::uint64_t before = sequence();
  three();
  EXPECT_EQ(before + 3, sequence());
}

TEST_F(RunLmdbNoSanitizer, AVersionIsAValidDatabase) {
  killed_after(std::chrono::milliseconds(30), false);
  const std::string number = checked_number();
  must({"snapshot", path("store"), "then"});
  killed_after(std::chrono::milliseconds(30), false);
  EXPECT_NE(number, checked_number());
  const Result then = run({"run", "--store", path("store"), "--file", file(), "--version", "then",
                           "--", VELLUM_LMDB_WRITER, "check", path("db")});
  EXPECT_EQ(0, then.status) << then.err;
  EXPECT_EQ(number, then.out);
}

}  // namespace
}  // namespace vellum::cli_test
