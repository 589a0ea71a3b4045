// Other projects' databases under vellum run, as far as the machine has them; docs/programs.md has
// the rest.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RunSqliteNoSanitizer : public CliTest, public testing::WithParamInterface<std::string> {
 protected:
  Arguments python(const std::string& mode, const std::string& name) const {
    return {"python3", VELLUM_SOURCE_DIR "/tests/run/programs/sqlite_modes.py", mode, path(name),
            GetParam()};
  }
  Arguments under_vellum(const Arguments& program) const {
    Arguments out = {"run", "--store", path("store"), "--file", path("s.db"), "--"};
    out.insert(out.end(), program.begin(), program.end());
    return out;
  }

  // Runs it until it has reached transaction `last`, and kills it. Returns the last transaction
  // that it has reported.
  std::uint64_t killed_behind(std::uint64_t last) const {
    int numbers[2];
    EXPECT_EQ(0, pipe(numbers));
    const pid_t running = fork();
    if (running == 0) {
      dup2(numbers[1], 1);
      close(numbers[0]);
      become_vellum(under_vellum(python("write", "s.db")));
    }
    close(numbers[1]);
    std::uint64_t found = 0;
    while (found < last && read(numbers[0], &found, 8) == 8) {
    }
    EXPECT_LE(last, found);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    kill(child_of(running), SIGKILL);
    while (read(numbers[0], &found, 8) == 8) {
    }
    close(numbers[0]);
    int status = 0;
    waitpid(running, &status, 0);
    EXPECT_EQ(128 + SIGKILL, WEXITSTATUS(status));
    return found;
  }
};

TEST_P(RunSqliteNoSanitizer, LeavesTheSameFilesAsWithoutVellum) {
  const Result plain = run_program(python("work", "plain.db"));
  ASSERT_EQ(0, plain.status) << plain.err;
  const Result result = must(under_vellum(python("work", "s.db")));
  EXPECT_EQ(plain.out, result.out);
  EXPECT_EQ(0U, plain.out.find("ok\n")) << plain.out;
  EXPECT_TRUE(read_file(path("plain.db")) == read_file(path("s.db")));
}

TEST_P(RunSqliteNoSanitizer, TheDatabaseIsIntactAfterAKill) {
  for (std::uint64_t turn = 1; turn <= 2 && !HasFailure(); ++turn) {
    const std::uint64_t last = killed_behind(turn * 5);
    const Result found = run_program(python("check", "s.db"));
    ASSERT_EQ(0, found.status) << found.err;
    const std::uint64_t number = std::stoull(found.out);
    EXPECT_TRUE(number == last || number == last + 1) << number << " behind " << last;
  }
}

INSTANTIATE_TEST_SUITE_P(Journals, RunSqliteNoSanitizer, testing::Values("delete", "wal"));

}  // namespace
}  // namespace vellum::cli_test
