#include "crash/simulator_lib.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "crash/repeats_lib.hpp"

namespace vellum::crash {

namespace {
constexpr std::size_t kMaxViolations = 5;
constexpr std::size_t kRecoveredBranches = 2;
}  // namespace

Simulator::Simulator(SimulatorOptions options, std::string label)
    : options_(options), label_(std::move(label)) {}

const Finding& Simulator::find(const Disk& image, const StoreState& names) {
  const std::uint64_t hash = image.hash();
  auto& known = seen_[hash];
  if (known == nullptr) {
    known = std::make_unique<Finding>(check_image(image, hash, names, superblock_));
    ++totals_.images_distinct;
    if (known->problem.empty() && hash % options_.recover_one_in == 0) {
      to_recover_.emplace_back(image, known->state);
    }
  }
  return *known;
}

void Simulator::report(const Disk& image, const std::string& what) {
  if (totals_.violations.size() >= kMaxViolations) return;
  std::string text = fmt::format("{}: {}\n", label_, what);
  for (const auto& line : image.describe()) text += "    " + line + "\n";
  totals_.violations.push_back(std::move(text));
}

void Simulator::judge(const Disk& image, const std::vector<StoreState>& states, std::size_t low,
                      std::size_t high, const Finding& finding, bool in_recovery) {
  const char* where = in_recovery ? "crash in recovery" : "crash";
  if (!finding.problem.empty()) return report(image, fmt::format("{}: {}", where, finding.problem));
  const auto begin = states.begin() + static_cast<std::ptrdiff_t>(low);
  const auto end = states.begin() + static_cast<std::ptrdiff_t>(high) + 1;
  if (std::find(begin, end, finding.state) != end) return;
  std::string text = fmt::format("{}: found {}", where, finding.state.text());
  for (auto at = begin; at != end; ++at) text += "\n  allowed " + at->text();
  report(image, text);
}

void Simulator::crash_everywhere(SimSession& session, const Effort& effort, std::uint64_t seed,
                                 bool in_recovery) {
  session.fs.stop_log();
  if (options_.on_log) options_.on_log(session.fs.log());
  const auto& states = session.session.states();
  CrashImages images(session.fs, effort, seed);
  images.for_each([&](const Disk& image, std::size_t low, std::size_t high) {
    if (totals_.violations.size() >= kMaxViolations) return;
    ++totals_.images_built;
    judge(image, states, low, high, find(image, states[high]), in_recovery);
  });
  totals_.crash_points += images.crash_points();
}

// The next program's actions: it opens a branch or two, commits and closes; the power fails within.
void Simulator::recover(const Disk& image, const StoreState& state, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  SimSession simulated(image, state);
  Session& session = simulated.session;
  if (!state.exists) session.create_store(superblock_);
  if (session.state().branches.empty()) session.create_branch("again", 2);
  std::vector<std::string> branches;
  for (const auto& [name, version] : session.state().branches) branches.push_back(name);
  std::shuffle(branches.begin(), branches.end(), random);
  if (branches.size() > kRecoveredBranches) branches.resize(kRecoveredBranches);
  for (const auto& name : branches) {
    Pages& pages = session.pages(name);
    if (random() % 2 == 0) {
      repeat_a_version(pages, session.core(), session.state(), random());
    }
    pages.store64(random() % pages.count(), 8 * (random() % 512), random());
    session.commit(name, random() % 3 == 0);
    if (random() % 2 == 0) session.close_writer(name);
  }
  ++totals_.recoveries;
  crash_everywhere(simulated, options_.second_effort, seed, true);
}

void Simulator::run(SimSession& session, std::uint64_t seed, const format::Superblock& superblock) {
  superblock_ = superblock;
  seen_.clear();
  to_recover_.clear();
  ++totals_.sequences;
  crash_everywhere(session, options_.effort, seed, false);
  // Recovery adds its own images to the list; two crashes in a row are enough.
  const auto chosen = std::exchange(to_recover_, {});
  for (const auto& [image, state] : chosen) recover(image, state, ++seed);
}

}  // namespace vellum::crash
