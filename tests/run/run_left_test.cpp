// vellum run: the end of a program, and processes that it leaves running.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <regex>
#include <thread>
#include <vellum/store.hpp>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RunLeftNoSanitizer : public CliTest {
 protected:
  ~RunLeftNoSanitizer() override {
    if (running_ > 0) kill(running_, SIGKILL), waitpid(running_, nullptr, 0);
  }

  std::string data() const { return path("data"); }
  Arguments command(const std::string& scenario, const Arguments& options = {}) const {
    Arguments out{"run", "--store", path("store"), "--file", data()};
    out.insert(out.end(), options.begin(), options.end());
    out.insert(out.end(), {"--", VELLUM_LEAVES_RUNNING, scenario, data()});
    return out;
  }

  void start(const std::string& scenario) {
    write_file(path("said"), "");
    running_ = fork();
    if (running_ != 0) return;
    dup2(open(path("said").c_str(), O_WRONLY | O_APPEND), STDERR_FILENO);
    become_vellum(command(scenario));
  }
  std::string said() const { return read_file(path("said")); }
  void await(const std::string& text) const {
    for (int i = 0; i < 3000 && !contains(said(), text); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(contains(said(), text)) << said();
  }
  int ended() {
    int status = 0;
    EXPECT_EQ(running_, waitpid(running_, &status, 0));
    running_ = 0;
    return status;
  }

  void expect_committed(const std::string& content) const {
    fs::remove(path("exported"));
    must({"export", path("store"), "main", path("exported")});
    EXPECT_EQ(content, read_file(path("exported")));
    EXPECT_EQ(content, read_file(data()));
  }
  // The process named in a line, which only this test ends.
  static void end_named(const std::string& err) {
    std::smatch id;
    ASSERT_TRUE(std::regex_search(err, id, std::regex("process ([0-9]+)\\) continues without")))
        << err;
    EXPECT_EQ(0, kill(std::stoi(id[1].str()), SIGKILL));
    std::error_code gone;  // from then on it has no files
    while (!fs::read_symlink("/proc/" + id[1].str() + "/exe", gone).empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  pid_t running_ = 0;
};

TEST_F(RunLeftNoSanitizer, AKilledProcessLeavesItsLastCommit) {
  const Result result = run(command("is-killed", {"--strict"}));
  EXPECT_EQ(0, result.status) << result.err;
  EXPECT_FALSE(contains(result.err, "has a writer")) << result.err;
  expect_committed("early late");
}

// A killed program is restarted before all of its processes have ended.
TEST_F(RunLeftNoSanitizer, TheNextRunWaitsForAnEndingProcess) {
  start("is-killed");
  while (!fs::exists(data()) || read_file(data()).empty()) {
    ASSERT_EQ(0, waitpid(running_, nullptr, WNOHANG)) << said();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  must({"run", "--store", path("store"), "--file", data(), "--", "true"});
  expect_committed("early late");
  EXPECT_EQ(0, ended());
}

// A run that begins or ends has a file's branch open briefly, perhaps while a program of another
// run opens the file.
TEST_F(RunLeftNoSanitizer, AProgramWaitsForABrieflyLockedBranch) {
  write_file(data(), "before");
  must({"run", "--store", path("store"), "--file", data(), "--", "true"});
  write_file(path("said"), "");
  running_ = fork();
  if (running_ == 0) {
    const std::string wait = "touch " + path("ready") + "; while [ ! -e " + path("go") +
                             " ]; do sleep 0.01; done; echo late >> " + data();
    become_vellum({"run", "--store", path("store"), "--file", data(), "--", "sh", "-c", wait});
  }
  while (!fs::exists(path("ready"))) {
    ASSERT_EQ(0, waitpid(running_, nullptr, WNOHANG));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  {
    const Region held = Store::open(path("store")).open_region("main");
    write_file(path("go"), "");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_EQ(0, ended());
  expect_committed("beforelate\n");
}

TEST_F(RunLeftNoSanitizer, ARemainingProcessIsAwaitedAndGetsTheSignal) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    start("stays");
    await("which has files of the run open");
    kill(running_, number);
    EXPECT_EQ(0, ended()) << "the program's own status: " << said();
    expect_committed("early");
  }
}

TEST_F(RunLeftNoSanitizer, ASecondSignalEndsTheWait) {
  start("ignores");
  await("waiting for");
  kill(running_, SIGTERM);
  // A signal that is still pending counts once.
  while (waitpid(running_, nullptr, WNOHANG) == 0 && !contains(said(), "without vellum run")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    kill(running_, SIGTERM);
  }
  running_ = 0;
  end_named(said());
  must({"run", "--store", path("store"), "--file", data(), "--", "true"});
  expect_committed("early");
}

TEST_F(RunLeftNoSanitizer, AProcessWithoutAFileOfTheRunIsNotAwaited) {
  end_named(run(command("holds-nothing")).err);
}

TEST_F(RunLeftNoSanitizer, AProgramThatUsesOpensslEndsAsUsual) {
  for (const char* order : {"first", "last"}) {
    SCOPED_TRACE(order);
    const Result result = run({"run", "--store", path(order), "--file", data(), "--",
                               VELLUM_USES_OPENSSL, data(), order});
    EXPECT_EQ(0, result.status) << result.err;
    must({"export", path(order), "main", path("exported")});
    EXPECT_TRUE(read_file(path("exported")) == std::string(600'000, 'x'));
    fs::remove(path("exported"));
    fs::remove(data());
  }
}

}  // namespace
}  // namespace vellum::cli_test
