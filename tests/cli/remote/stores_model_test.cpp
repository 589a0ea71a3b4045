// A model of stores that exchange versions, by commands: random steps of several full and lazy
// clones at one remote, and shadow copies of what each version must contain. Commands are killed,
// or stopped while other stores work. VELLUM_MODEL_STEPS and VELLUM_MODEL_SEED are for long runs.
//
// tests/remote_model has the same with steps of the library on a simulated disk, and more of them.
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "run/run_lib.hpp"
#include "support/s3_url.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

using Contents = std::map<std::string, std::string>;  // of snapshots, by name

constexpr std::size_t kModelPages = 40, kPageBytes = 4096;
constexpr std::size_t kMaxStores = 3, kMaxNames = 6;

std::uint64_t model_number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct StoreContent {
  std::string path, branch;
  bool lazy = false;
  Contents snapshots;
};

// A command in a process of its own. What it prints is dropped.
class Command {
 public:
  explicit Command(const Arguments& arguments) {
    std::fflush(stdout);  // otherwise the child would print it, too
    pid_ = fork();
    if (pid_ != 0) return;
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(kExecFailed);
    become_vellum(arguments);
  }
  void signal(int number) const { kill(pid_, number); }
  // Its status; -1: a signal has ended it.
  int wait() const {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
};

// The parameter: whether the remote is at the real server.
class StoresModel : public CliTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    url_ = test::new_remote_url(GetParam(), path("remote"));
    if (url_.empty()) GTEST_SKIP() << test::kNoS3;
    setenv("VELLUM_CACHE_DIR", path("cache").c_str(), 1);
    stores_.push_back({make_store({"--pack-size", "1MiB"}), "b0", false, {}});
    must({"remote", "add", stores_[0].path, "origin", url_});
  }
  void TearDown() override { unsetenv("VELLUM_CACHE_DIR"); }

  void step() {
    StoreContent& store = stores_[pick(stores_.size())];
    if (&store == stopped_) return;
    ++steps_;
    switch (pick(16)) {
      case 0:
      case 1:
      case 2:
        return add_version(store, "backup");
      case 3:
      case 4:
        return add_version(store, "import");
      case 5:
        return remove(store);
      case 6:
        return act(store, {"gc", store.path});
      case 7:
      case 8:
        return act(store, {"gc", store.path, "--recompress"});
      case 9:
      case 10:
        return push(store);
      case 11:
      case 12:
        return pull(store);
      case 13:
        return stopped_ == nullptr ? clone() : void();
      case 14:
        return stopped_ == nullptr ? forget_or_fetch(store) : void();
      default:
        return there_.empty() ? void() : act(store, {"gc", url_});
    }
  }

  void expect_all() const {
    const auto expect = [](const std::string& store, const Contents& contents) {
      for (const auto& [name, bytes] : contents) {
        EXPECT_TRUE(must({"cat", store, name}).out == bytes) << name << " of " << store;
      }
      must({"verify", store, "--read-data"});
    };
    for (const StoreContent& store : stores_) expect(store.path, store.snapshots);
    if (!there_.empty()) expect(url_, there_);
  }
  void report(std::uint64_t seed) const {
    std::printf("  seed %llu: %d steps in %zu stores, %d killed, %d stopped\n",
                static_cast<unsigned long long>(seed), steps_, names_of_stores_ + 1, killed_,
                paused_);
  }

  std::mt19937_64 random_;

 private:
  std::size_t pick(std::size_t n) { return random_() % n; }
  std::vector<std::string> pick_names(const Contents& from) {
    std::vector<std::string> out;
    for (const auto& [name, bytes] : from) {
      if (pick(2) == 0) out.push_back(name);
    }
    return out;
  }

  std::string page() {
    std::string out;
    while (out.size() < kPageBytes) out += std::to_string(random_() % 1000 * 1000003) + " ";
    out.resize(kPageBytes);
    return out;
  }
  // New pages, and small changes, of a version that the store has.
  std::string make_content(const StoreContent& store) {
    std::string out;
    if (!store.snapshots.empty()) {
      out = std::next(store.snapshots.begin(),
                      static_cast<std::ptrdiff_t>(pick(store.snapshots.size())))
                ->second;
    }
    while (out.size() < kModelPages * kPageBytes) out += page();
    for (std::size_t n = 1 + pick(kModelPages / 2); n > 0; --n) {
      const std::size_t at = pick(kModelPages) * kPageBytes;
      if (pick(2) == 0) {
        out.replace(at, kPageBytes, page());
      } else {
        out[at + pick(kPageBytes)] = static_cast<char>('a' + pick(26));
      }
    }
    return out;
  }

  // Runs the command, perhaps killed and then again unless `is_done`, or stopped while others work.
  void act(
      StoreContent& store, const Arguments& arguments,
      const std::function<bool()>& is_done = [] { return false; }) {
    SCOPED_TRACE("step " + std::to_string(steps_) + ": " + arguments[0] + " " + arguments[1]);
    const std::size_t kind = pick(6);
    if (kind < 2) {
      const Command command(arguments);
      usleep(static_cast<useconds_t>(pick(30000)));
      command.signal(SIGKILL);
      if (command.wait() == 0) return;
      ++killed_;
      if (is_done()) return;
    } else if (kind == 2 && stopped_ == nullptr) {
      const Command command(arguments);
      usleep(static_cast<useconds_t>(pick(30000)));
      command.signal(SIGSTOP);
      stopped_ = &store;
      ++paused_;
      for (std::size_t n = 1 + pick(2); n > 0; --n) step();
      stopped_ = nullptr;
      command.signal(SIGCONT);
      EXPECT_EQ(command.wait(), 0);
      return;
    }
    must(arguments);
  }

  void add_version(StoreContent& store, const std::string& command) {
    if (store.snapshots.size() == kMaxNames) return;
    const std::string name = "s" + std::to_string(++names_), bytes = make_content(store);
    const std::string from = file("file-" + name, bytes);
    const Arguments arguments =
        command == "backup"
            ? Arguments{"backup", store.path, from, "--name", name, "--branch", store.branch}
            : Arguments{"import", store.path, store.branch, from, "--snapshot", name};
    act(store, arguments, [&] { return run({"cat", store.path, name}).status == 0; });
    store.snapshots[name] = bytes;
  }
  void remove(StoreContent& store) {
    if (store.snapshots.size() < 2) return;
    const std::string name = store.snapshots.begin()->first;
    store.snapshots.erase(name);
    act(store, {"rm", store.path, name},
        [&] { return run({"cat", store.path, name}).status != 0; });
  }
  void push(StoreContent& store) {
    const auto names = pick_names(store.snapshots);
    if (names.empty()) return;
    Contents pushed;
    for (const std::string& name : names) pushed[name] = store.snapshots[name];
    Arguments arguments{"push", store.path};
    arguments.insert(arguments.end(), names.begin(), names.end());
    act(store, arguments);
    there_.merge(pushed);
  }
  void pull(StoreContent& store) {
    const auto names = pick_names(there_);
    if (names.empty()) return;
    Arguments arguments{"pull", store.path};
    arguments.insert(arguments.end(), names.begin(), names.end());
    act(store, arguments);
    for (const std::string& name : names) store.snapshots[name] = there_[name];
  }
  void clone() {
    const auto names = pick_names(there_);
    if (names.empty()) return;
    const std::string number = std::to_string(++names_of_stores_);
    StoreContent store{path("c" + number), "b" + number, pick(2) == 0, {}};
    Arguments arguments{"clone", url_, store.path};
    arguments.insert(arguments.end(), names.begin(), names.end());
    if (store.lazy) arguments.emplace_back("--lazy");
    for (const std::string& name : names) store.snapshots[name] = there_[name];
    act(store, arguments, [&] { return fs::exists(store.path); });
    if (stores_.size() == kMaxStores) stores_.erase(stores_.begin() + 1);
    stores_.push_back(std::move(store));
  }
  void forget_or_fetch(StoreContent& store) {
    if (store.lazy && pick(2) == 0) {
      act(store, {"pull", store.path, "--packs"});
      store.lazy = false;
      return;
    }
    if (there_.size() < 2) return;
    const std::string name = there_.begin()->first;
    act(store, {"rm", url_, name}, [&] { return run({"cat", url_, name}).status != 0; });
    there_.erase(name);
  }

  std::string url_;
  std::vector<StoreContent> stores_;
  Contents there_;
  const StoreContent* stopped_ = nullptr;  // the store of a stopped command
  std::size_t names_of_stores_ = 0;
  int steps_ = 0, killed_ = 0, paused_ = 0, names_ = 0;
};

TEST_P(StoresModel, LosesNothing) {
  const std::uint64_t seed = model_number_from("VELLUM_MODEL_SEED", 1);
  random_.seed(seed);
  const std::uint64_t steps = model_number_from("VELLUM_MODEL_STEPS", 40);
  for (std::uint64_t n = 0; n < steps && !HasFailure(); ++n) {
    step();
    if (n % 8 == 7) expect_all();
  }
  expect_all();
  report(seed);
}

INSTANTIATE_TEST_SUITE_P(At, StoresModel, testing::Bool(),
                         [](const auto& at) { return at.param ? "Server" : "Directory"; });

}  // namespace
}  // namespace vellum::cli_test
