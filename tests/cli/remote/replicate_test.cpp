// vellum replicate: concurrent with imports, killed repeatedly, and ended by a signal; to a
// directory, and to a real S3 server (tools/with-s3.sh).
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "run/run_lib.hpp"
#include "support/s3_url.hpp"

namespace vellum::cli_test {
namespace {

using namespace std::chrono_literals;

// The parameter: whether the remote is at the real server.
class Replicate : public CliTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    url = test::new_remote_url(GetParam(), path("remote"));
    if (url.empty()) GTEST_SKIP() << test::kNoS3;
    must({"remote", "add", store, "origin", url});
  }
  void begin() {
    child = fork();
    if (child == 0) become_vellum({"replicate", store, url, "--interval", "40ms", "--quiet"});
  }
  // Waits until the remote has the version, so the replication is running.
  void wait_for(const std::string& name) const {
    for (int i = 0; i < 400; ++i) {
      const Result log = run({"log", url, "--names"});
      const auto names = lines_of(log.out);
      if (std::find(names.begin(), names.end(), name) != names.end()) return;
      std::this_thread::sleep_for(50ms);
    }
    ADD_FAILURE() << name << " does not come";
  }
  // The exit status, or minus the signal that ended it.
  int end(int signal) {
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void import(unsigned seed, const std::string& snapshot) const {
    must({"import", store, "main", file("f", noise(20, seed)), "--snapshot", snapshot});
  }

  const std::string store = make_store_with({noise(20, 1)});
  std::string url;
  pid_t child = -1;
};

TEST_P(Replicate, ASignalEndsReplicationAfterTheLastPush) {
  begin();
  wait_for("main");
  import(7, "a");
  EXPECT_EQ(end(SIGTERM), 0);
  must({"clone", url, path("copy")});
  EXPECT_EQ(must({"cat", path("copy"), "a"}).out, noise(20, 7));
  EXPECT_EQ(must({"cat", path("copy"), "main"}).out, noise(20, 7));
}

TEST_P(Replicate, AnImpossibleIntervalIsRefused) {
  for (const char* interval : {"0s", "5", "x"}) {
    EXPECT_EQ(run({"replicate", store, url, "--interval", interval}).status, 2) << interval;
  }
}

// VELLUM_REPLICATE_KILLS=1000 makes the run that docs/durability.md counts.
TEST_P(Replicate, RandomKillsLoseNoVersionAtTheRemote) {
  const char* const wanted = std::getenv("VELLUM_REPLICATE_KILLS");
  const int kills = wanted == nullptr ? 12 : std::atoi(wanted);
  std::mt19937 random(3);
  for (int i = 0; i < kills; ++i) {
    begin();
    const unsigned seed = 100 + static_cast<unsigned>(i);
    import(seed, "k" + std::to_string(i));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    ASSERT_EQ(end(SIGKILL), -SIGKILL);
    if (i % 4 != 3) continue;
    // Every version at the remote is complete.
    const auto names = lines_of(must({"log", url, "--names"}).out);
    must({"verify", url, "--read-data"});
    for (const std::string& name : names) {
      if (!name.starts_with("k")) continue;
      const unsigned made = 100 + static_cast<unsigned>(std::stoi(name.substr(1)));
      const std::string copy = path("copy-" + std::to_string(i));
      if (made + 4 <= seed) continue;  // checked before
      must({"clone", url, copy, name});
      EXPECT_EQ(must({"cat", copy, name}).out, noise(20, made));
      std::filesystem::remove_all(copy);
    }
  }
  // A new version: the killed processes may have sent all others, and their names would prove
  // nothing about this process.
  begin();
  import(99, "last");
  wait_for("last");
  EXPECT_EQ(end(SIGINT), 0);
  must({"clone", url, path("all")});
  for (int i = 0; i < kills; ++i) {
    const unsigned seed = 100 + static_cast<unsigned>(i);
    EXPECT_EQ(must({"cat", path("all"), "k" + std::to_string(i)}).out, noise(20, seed));
  }
}

INSTANTIATE_TEST_SUITE_P(At, Replicate, testing::Bool(), [](const auto& of) {
  return std::string(of.param ? "Server" : "Directory");
});

}  // namespace
}  // namespace vellum::cli_test
