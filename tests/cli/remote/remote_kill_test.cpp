// push, clone and readers without a clone, killed at random times; and two pushers, a gc and a
// reader that race. The remote is a directory, or a real S3 server (tools/with-s3.sh). Versions
// share most pages with earlier ones, and packs are small, so packs and pieces have records of
// several versions. The short form kills a few times. VELLUM_PUSH_KILLS, VELLUM_CLONE_KILLS and
// VELLUM_LAZY_KILLS set the number of kills, and VELLUM_REMOTE_RACE_SECONDS the length of the race.
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "run/run_lib.hpp"
#include "support/s3_url.hpp"

namespace vellum::cli_test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr unsigned kPages = 200;
constexpr unsigned kChangesOnce = 10;  // a page changes in one of this many versions

int number_from(const char* variable, int by_default) {
  const char* const wanted = std::getenv(variable);
  return wanted == nullptr ? by_default : std::atoi(wanted);
}

// For a long run: prints the progress.
void tell(int killed) {
  if (killed % 100 != 0) return;
  std::printf("%d killed\n", killed);
  std::fflush(stdout);
}

// The content of the version with this number.
std::string content_of(unsigned version) {
  std::string out;
  for (unsigned page = 0; page < kPages; ++page) {
    const unsigned since = version + kChangesOnce - (version + page) % kChangesOnce;
    out += noise(1, since * kPages + page);
  }
  return out;
}

std::string name_of(unsigned seed) { return "k" + std::to_string(seed); }

// Until the child ends, or the time is over.
void wait_at_most(pid_t child, std::chrono::microseconds time) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  ASSERT_GE(fd, 0);
  pollfd ended{fd, POLLIN, 0};
  const timespec timeout{time / 1s, (time % 1s) / 1ns};
  ppoll(&ended, 1, &timeout, nullptr);
  close(fd);
}

// Kills a command after some time. Returns whether it had already ended by itself.
bool kill_after(const Arguments& arguments, std::chrono::microseconds pause) {
  const pid_t child = fork();
  if (child == 0) {
    // The output of a killed command is not part of the test's log.
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(kExecFailed);
    become_vellum(arguments);
  }
  wait_at_most(child, pause);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return false;
  EXPECT_EQ(WEXITSTATUS(status), 0) << arguments[0];
  return true;
}

// The parameter: whether the remote is at the real server.
class RemoteKill : public CliTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    url = test::new_remote_url(GetParam(), path("remote"));
    if (url.empty()) GTEST_SKIP() << test::kNoS3;
    must({"remote", "add", store, "origin", url});
  }
  void import(unsigned seed) const {
    must({"import", store, "main", file("f", content_of(seed)), "--snapshot", name_of(seed)});
  }
  // From zero to a little more than the time of the last complete one. That time depends on the
  // load of the machine, so it is measured repeatedly: with a much larger bound most commands would
  // end by themselves, and with a much smaller one their last steps would not be tested.
  bool kill_at_random(const Arguments& arguments) {
    const auto most = static_cast<unsigned>(most_.count());
    return kill_after(arguments, std::chrono::microseconds(random_() % most));
  }
  void complete(const Arguments& arguments) {
    const auto start = std::chrono::steady_clock::now();
    must(arguments);
    most_ = std::chrono::duration_cast<std::chrono::microseconds>(
        (std::chrono::steady_clock::now() - start) * 5 / 4);
  }

  const std::string store = make_store_with({content_of(1)}, {"--pack-size", "1MiB"});
  std::string url;

 private:
  std::mt19937 random_{7};
  std::chrono::microseconds most_{1};
};

// Each kill has a separate version. A version that a push has reported exists after all later
// kills.
TEST_P(RemoteKill, AKilledPushLosesNoPushedVersion) {
  const int kills = number_from("VELLUM_PUSH_KILLS", 6);
  complete({"push", store, "--all"});
  int killed = 0;
  unsigned seed = 100, oldest = 100;
  std::vector<unsigned> pushed;
  while (killed < kills) {
    import(seed);
    const std::string name = name_of(seed);
    if (kill_at_random({"push", store, "main", name})) {
      pushed.push_back(seed);
    } else {
      tell(++killed);
      if (killed % 3 == 0) {
        complete({"push", store, "main", name});
        pushed.push_back(seed);
      }
    }
    ++seed;
    if (seed % 10 != 0 || pushed.empty()) continue;
    must({"verify", url, "--read-data"});
    const unsigned newest = pushed.back();
    fs::remove_all(path("copy"));
    must({"clone", url, path("copy"), name_of(newest)});
    EXPECT_TRUE(must({"cat", path("copy"), name_of(newest)}).out == content_of(newest));
    // To keep the stores small, only the newest versions are kept, on both sides.
    for (; oldest + 40 < seed; ++oldest) {
      must({"rm", store, name_of(oldest)});
      // A push may have been killed after its last step.
      const bool was_pushed = std::erase(pushed, oldest) > 0;
      const int status = run({"rm", url, name_of(oldest)}).status;
      EXPECT_TRUE(status == 0 || (status == 3 && !was_pushed)) << oldest;
    }
    must({"gc", store});
    must({"gc", url});
  }
  fs::remove_all(path("copy"));
  must({"clone", url, path("copy")});
  for (const unsigned one : pushed) {
    EXPECT_TRUE(must({"cat", path("copy"), name_of(one)}).out == content_of(one)) << one;
  }
  must({"verify", path("copy"), "--read-data"});
  must({"verify", url, "--read-data"});
}

// Its leftovers do not count as a store, and the same command then succeeds.
TEST_P(RemoteKill, AKilledCloneCanBeRepeated) {
  const int kills = number_from("VELLUM_CLONE_KILLS", 6);
  import(2);
  import(3);
  must({"push", store, "--all"});
  complete({"clone", url, path("copy")});
  fs::remove_all(path("copy"));
  for (int killed = 0; killed < kills;) {
    const bool has_ended = kill_at_random({"clone", url, path("copy")});
    if (!has_ended) tell(++killed);
    // If it was killed after its last step, it exists already.
    if (!has_ended && !fs::exists(path("copy")) && killed % 5 != 0) continue;
    if (!fs::exists(path("copy"))) complete({"clone", url, path("copy")});
    EXPECT_TRUE(must({"cat", path("copy"), "main"}).out == content_of(3));
    EXPECT_TRUE(must({"cat", path("copy"), "k2"}).out == content_of(2));
    must({"verify", path("copy"), "--read-data"});
    fs::remove_all(path("copy"));
  }
}

// Readers share a cache, which a killed one may leave in any state.
TEST_P(RemoteKill, AKilledReaderLeavesAUsableCache) {
  const int kills = number_from("VELLUM_LAZY_KILLS", 6);
  import(2);
  must({"push", store, "--all"});
  ASSERT_EQ(setenv("VELLUM_CACHE_DIR", path("cache").c_str(), 1), 0);
  const Arguments read{"cat", url, "k2"};
  for (int killed = 0; killed < kills;) {
    if (killed % 4 == 0) {
      fs::remove_all(path("cache"));
      complete(read);  // without a cache: the others take less time
      fs::remove_all(path("cache"));
    }
    if (!kill_at_random(read)) tell(++killed);
    EXPECT_TRUE(must(read).out == content_of(2));
  }
  ASSERT_EQ(unsetenv("VELLUM_CACHE_DIR"), 0);
}

// Two stores push a branch each, a gc removes forgotten versions concurrently, and a reader
// repeatedly reads the same version.
TEST_P(RemoteKill, RacingPushersAndAGcLoseNoVersion) {
  const std::chrono::seconds length(number_from("VELLUM_REMOTE_RACE_SECONDS", 4));
  import(2);
  must({"push", store, "--all"});
  const auto end = std::chrono::steady_clock::now() + length;
  const auto go_on = [&] { return std::chrono::steady_clock::now() < end; };
  constexpr unsigned kPushers = 2;
  std::array<std::atomic<unsigned>, kPushers> pushed{};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kPushers; ++i) {
    threads.emplace_back([&, i] {
      const std::string mine = path("pusher" + std::to_string(i)), branch = "b" + std::to_string(i);
      must({"clone", url, mine, "k2"});
      for (unsigned n = 1; n == 1 || go_on(); ++n) {
        const unsigned seed = i * 1'000'000 + 1'000 + n;
        const std::string content = path("content" + std::to_string(i));
        write_file(content, content_of(seed));
        must({"import", mine, branch, content, "--snapshot", name_of(seed)});
        must({"push", mine, branch, name_of(seed)});
        // The one before the last is kept for the reader, and earlier ones are removed.
        if (n > 2) must({"rm", url, name_of(seed - 2)});
        if (n > 2) must({"rm", mine, name_of(seed - 2)});
        if (n % 20 == 0) must({"gc", mine});
        pushed[i] = seed;
      }
    });
  }
  threads.emplace_back([&] {
    do {
      must({"gc", url});
    } while (go_on());
  });
  threads.emplace_back([&] {
    // k2 stays, so a reader of it gets all of it, whatever the gc does meanwhile.
    const std::string text = content_of(2);
    do {
      EXPECT_TRUE(must({"cat", url, "k2"}).out == text);
    } while (go_on());
  });
  for (std::thread& thread : threads) thread.join();
  must({"verify", url, "--read-data"});
  must({"clone", url, path("all")});
  for (unsigned i = 0; i < kPushers; ++i) {
    const unsigned last = pushed[i];
    std::printf("pusher %u: %u pushes\n", i, last % 1'000'000 - 1'000);
    EXPECT_TRUE(must({"cat", path("all"), name_of(last)}).out == content_of(last));
    EXPECT_TRUE(must({"cat", path("all"), "b" + std::to_string(i)}).out == content_of(last));
  }
}

INSTANTIATE_TEST_SUITE_P(At, RemoteKill, testing::Bool(), [](const auto& of) {
  return std::string(of.param ? "Server" : "Directory");
});

}  // namespace
}  // namespace vellum::cli_test
