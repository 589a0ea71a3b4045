// push, clone and readers of a remote, killed at random moments and begun again.
//
// With VELLUM_TEST_S3_URL the remote is on that server, else it is a directory. The counts that
// docs/durability.md names come from VELLUM_PUSH_KILLS, VELLUM_CLONE_KILLS and VELLUM_LAZY_KILLS.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "cli/run_lib.hpp"
#include "support/s3_url.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

int kills_wanted(const char* variable, int otherwise) {
  const char* const wanted = std::getenv(variable);
  return wanted == nullptr ? otherwise : std::atoi(wanted);
}

class RemoteKills : public CliTest {
 protected:
  RemoteKills() {
    setenv("VELLUM_CACHE_DIR", path("cache").c_str(), 1);
    must({"remote", "add", store, "origin", url});
  }
  ~RemoteKills() override { unsetenv("VELLUM_CACHE_DIR"); }

  void import(unsigned seed) {
    must({"import", store, "main", file("f", noise(kPages, seed)), "--snapshot", name_of(seed)});
  }
  static std::string name_of(unsigned seed) { return "k" + std::to_string(seed); }
  // Whether the program ended by itself, with success; it is killed after a random share of the time
  // that it took before.
  bool runs_to_its_end(const Arguments& arguments) {
    const auto begun = std::chrono::steady_clock::now();
    const pid_t child = fork();
    if (child == 0) {
      dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
      become_vellum(arguments);
    }
    std::this_thread::sleep_for(
        std::chrono::microseconds(random_() % static_cast<unsigned>(usual_us_)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) return false;
    EXPECT_EQ(0, WEXITSTATUS(status)) << arguments[0];
    usual_us_ = std::chrono::duration_cast<std::chrono::microseconds>(
                    std::chrono::steady_clock::now() - begun)
                    .count() +
                1000;
    return true;
  }

  static constexpr std::size_t kPages = 60;
  const std::string s3_ = test::new_s3_url();
  const std::string url = s3_.empty() ? "file://" + path("remote") : s3_;
  const std::string store = make_store_with({noise(kPages, 0)});

 private:
  std::mt19937 random_{7};
  long usual_us_ = 200'000;
};

TEST_F(RemoteKills, APushLosesNothingThatItReported) {
  const int kills = kills_wanted("VELLUM_PUSH_KILLS", 12);
  std::set<unsigned> reported, made;
  unsigned seed = 0;
  for (int killed = 0; killed < kills;) {
    import(++seed);
    made.insert(seed);
    if (runs_to_its_end({"push", store, "--all"})) {
      reported = made;
    } else {
      ++killed;
    }
    if (seed % 8 != 0) continue;
    must({"verify", url, "--read-data"});
    const auto names = lines_of(must({"log", url, "--names"}).out);
    const std::set<std::string> there(names.begin(), names.end());
    for (const unsigned each : reported) EXPECT_TRUE(there.contains(name_of(each))) << each;
    if (seed % 16 == 0) must({"gc", url});
    // History need not grow with the number of kills.
    for (; made.size() > 40; made.erase(made.begin())) {
      must({"rm", store, name_of(*made.begin())});
      reported.erase(*made.begin());
    }
  }
  must({"push", store, "--all"});
  must({"clone", url, path("copy")});
  for (const unsigned each : made)
    EXPECT_TRUE(noise(kPages, each) == must({"cat", path("copy"), name_of(each)}).out) << each;
  must({"verify", path("copy"), "--read-data"});
}

TEST_F(RemoteKills, ACloneIsBegunAgainUntilItIsWhole) {
  const int kills = kills_wanted("VELLUM_CLONE_KILLS", 12);
  for (unsigned seed = 1; seed <= 8; ++seed) import(seed);
  must({"push", store, "--all"});
  const std::string copy = path("copy");
  for (int killed = 0; killed < kills;) {
    if (!runs_to_its_end({"clone", url, copy})) {
      ++killed;
      continue;
    }
    for (unsigned seed = 1; seed <= 8; ++seed)
      ASSERT_TRUE(noise(kPages, seed) == must({"cat", copy, name_of(seed)}).out) << seed;
    fs::remove_all(copy);
  }
}

// They share a cache of pieces, which a killed one may leave in any state.
TEST_F(RemoteKills, ReadersThatAreKilledLeaveTheCacheSound) {
  const int kills = kills_wanted("VELLUM_LAZY_KILLS", 12);
  for (unsigned seed = 1; seed <= 8; ++seed) import(seed);
  must({"push", store, "--all"});
  unsigned next = 0;
  for (int killed = 0; killed < kills;) {
    const std::string name = name_of(next++ % 8 + 1);
    if (!runs_to_its_end({"cat", url, name})) ++killed;
    if (next % 4 != 0) continue;
    EXPECT_TRUE(noise(kPages, (next - 1) % 8 + 1) == must({"cat", url, name}).out) << name;
    if (next % 16 == 0) fs::remove_all(path("cache"));
  }
}

}  // namespace
}  // namespace vellum::cli_test
