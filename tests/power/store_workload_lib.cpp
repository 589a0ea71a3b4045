#include <fmt/format.h>

#include <stdexcept>

#include "base/files/file.hpp"
#include "crash/script_lib.hpp"
#include "crash/session_lib.hpp"
#include "power/workload_lib.hpp"
#include "store/check/check.hpp"

namespace vellum::power {

namespace {

using crash::Session;
using crash::StoreState;

// The crash simulator's program, model and checks, on files of the operating system.
class StoreWorkload : public Workload {
 public:
  explicit StoreWorkload(const format::Superblock& options) : options_(options) {}

  void run(const Site& site) override {
    Session session(base::posix_fs(), path(site.directory), StoreState{},
                    [&](std::size_t low, std::size_t high) {
                      site.progress.begun = high;
                      site.progress.returned = low;
                    });
    session.create_store(options_);
    use(session);
    session.close_all();
    states_ = session.states();
  }

  void check(const std::string& directory, const Allowed& allowed) override {
    const StoreState found = crash::read_state(base::posix_fs(), path(directory));
    expect_allowed(found, allowed);
    if (found.exists) expect_no_damage(directory);
    if (allowed.choice % 3 == 0) go_on(directory, found, allowed.choice / 3);
  }

 protected:
  virtual void use(Session& session) = 0;

 private:
  static std::string path(const std::string& directory) { return directory + "/s"; }

  void expect_allowed(const StoreState& found, const Allowed& allowed) const {
    std::string text;
    for (std::uint64_t i = allowed.returned; i <= allowed.begun; ++i) {
      if (states_[i] == found) return;
      text += "\n  allowed: " + states_[i].text();
    }
    throw std::runtime_error("found: " + found.text() + text);
  }

  static void expect_no_damage(const std::string& directory) {
    const auto core = store::StoreDirectory::open(base::posix_fs(), path(directory));
    const auto report = store::verify_store(*core, true, nullptr);
    if (report.damages.empty()) return;
    const auto& first = report.damages.front();
    throw std::runtime_error(fmt::format("verify: {}: {}", first.object, first.reason));
  }

  // The store takes commits without a repair step, and gc runs on the leftovers of the cut.
  void go_on(const std::string& directory, const StoreState& found, std::uint64_t choice) const {
    Session session(base::posix_fs(), path(directory), found);
    if (!found.exists) session.create_store(options_);
    if (found.branches.empty()) session.create_branch("fresh", 2);
    const std::string branch = session.state().branches.begin()->first;
    if (choice % 4 == 0) session.collect_garbage(true, choice % 8 == 0 ? 3 : 0);
    if (session.pages(branch).count() == 0) session.pages(branch).grow(1);
    session.pages(branch).store64(0, 8 * (choice % 512), choice + 1);
    session.commit(branch, choice % 2 == 0);
    if (choice % 4 == 1) session.snapshot(branch, "after-the-cut");
    session.close_all();
    const StoreState then = crash::read_state(base::posix_fs(), path(directory));
    if (then == session.state()) return;
    throw std::runtime_error(fmt::format("after the next commit: {}\n  instead of {}", then.text(),
                                         session.state().text()));
  }

  format::Superblock options_;
  std::vector<StoreState> states_;
};

class ScriptWorkload : public StoreWorkload {
 public:
  ScriptWorkload(std::uint64_t seed, std::size_t steps)
      : StoreWorkload(crash::options_for(seed)), seed_(seed), steps_(steps) {}
  const char* name() const override { return "store"; }

 private:
  void use(Session& session) override { crash::run_script(session, seed_, steps_); }

  std::uint64_t seed_;
  std::size_t steps_;
};

// Packs move between the store and an archive, and a cache gets copies.
class TiersWorkload : public StoreWorkload {
 public:
  explicit TiersWorkload(std::uint64_t rounds)
      : StoreWorkload(crash::options_for(6)), rounds_(rounds) {}
  const char* name() const override { return "tiers"; }

 private:
  void use(Session& session) override {
    session.add_tiers();
    session.create_branch("main", 12);
    for (std::uint64_t i = 0; i < rounds_; ++i) {
      fill(session, fmt::format("a{}", i));
      fill(session, fmt::format("b{}", i));
      session.move_packs(i % 2 == 0);
      if (i % 3 == 1) session.remove_snapshot(fmt::format("a{}", i));
      if (i % 3 == 1) session.collect_garbage(true, 3);
      session.move_packs(i % 4 < 2);
    }
  }
  void fill(Session& session, const std::string& snapshot) {
    for (std::size_t page = 0; page < 12; page += 1 + random_() % 2) {
      session.pages("main").fill(page, random_);
    }
    session.snapshot("main", snapshot);
  }

  std::uint64_t rounds_;
  std::mt19937_64 random_{2};
};

}  // namespace

std::unique_ptr<Workload> store_workload(std::uint64_t seed, std::size_t steps) {
  return std::make_unique<ScriptWorkload>(seed, steps);
}

std::unique_ptr<Workload> tiers_workload(std::uint64_t rounds) {
  return std::make_unique<TiersWorkload>(rounds);
}

}  // namespace vellum::power
