#include "crash/script_lib.hpp"

#include <fmt/format.h>

#include <array>

#include "crash/repeats_lib.hpp"

namespace vellum::crash {

namespace {

enum class ScriptStep {
  small,
  many_small,
  zero,
  medium,
  large,
  checkpoint,
  snapshot,
  branch,
  branch_at,
  remove_snapshot,
  remove_branch,
  reopen,
  grow,
  huge,
  gc
};
constexpr std::size_t kSteps = 15, kFlavours = 8;

struct FlavourWeights {
  const char* name;
  std::array<unsigned, kSteps> steps;  // the frequency of each step, in the order of ScriptStep
};

// In the order of Flavour.
constexpr std::array<FlavourWeights, kFlavours> kWeights{{
    {"mixed", {24, 6, 5, 10, 8, 8, 10, 2, 4, 4, 3, 6, 4, 0, 4}},
    {"chains", {20, 2, 1, 0, 0, 60, 6, 0, 1, 1, 0, 4, 0, 0, 3}},
    {"rolls", {6, 0, 2, 10, 40, 10, 8, 0, 2, 2, 1, 6, 4, 0, 4}},
    {"wraps", {10, 50, 4, 20, 0, 2, 3, 0, 1, 1, 0, 4, 1, 0, 1}},
    {"names", {12, 2, 2, 4, 3, 4, 24, 8, 14, 14, 10, 4, 2, 0, 6}},
    {"reopening", {24, 4, 2, 6, 6, 6, 6, 1, 2, 2, 2, 36, 2, 0, 3}},
    {"garbage", {8, 0, 3, 4, 24, 16, 22, 1, 3, 18, 2, 8, 2, 0, 26}},
    {"huge", {20, 0, 2, 2, 10, 5, 10, 0, 0, 0, 0, 10, 0, 40, 2}},
}};

const FlavourWeights& weights_of(Flavour flavour) {
  return kWeights[static_cast<std::size_t>(flavour)];
}

class Script {
 public:
  Script(Session& session, std::uint64_t seed)
      : session_(session), random_(seed), flavour_(flavour_of(seed)) {
    const auto& weights = weights_of(flavour_).steps;
    choose_ = std::discrete_distribution<std::size_t>(weights.begin(), weights.end());
  }

  void run(std::size_t steps) {
    session_.create_branch("main", flavour_ == Flavour::huge ? 900 : 8 + below(12));
    for (std::size_t i = 0; i < steps; ++i) step(static_cast<ScriptStep>(choose_(random_)));
    session_.close_all();
  }

 private:
  void step(ScriptStep step);
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  bool chance(std::size_t percent) { return below(100) < percent; }

  std::string any(const std::map<std::string, VersionState>& versions) {
    auto at = versions.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(versions.size())));
    return at->first;
  }
  std::string branch() { return any(session_.state().branches); }

  void store_some(const std::string& name, std::size_t count) {
    Pages& pages = session_.pages(name);
    const std::size_t range = flavour_ == Flavour::chains ? 3 : pages.count();
    for (std::size_t i = 0; i < count; ++i) {
      pages.store64(below(range), 8 * below(512), chance(10) ? 0 : random_());
    }
  }
  void fill_some(const std::string& name, std::size_t count) {
    Pages& pages = session_.pages(name);
    for (std::size_t i = 0; i < count; ++i) pages.fill(below(pages.count()), random_);
  }
  void commit_small(const std::string& name) {
    store_some(name, 1 + below(3));
    session_.commit(name, false);
  }
  void commit_huge(const std::string& name) {
    Pages& pages = session_.pages(name);
    for (std::size_t p = 0; p < pages.count(); ++p) pages.fill(p, random_);
    session_.commit(name, false);
  }
  void grow(const std::string& name) {
    Pages& pages = session_.pages(name);
    pages.grow(pages.count() + 1 + below(5));
    pages.store64(pages.count() - 1, 8, random_());
    session_.commit(name, chance(30));
  }
  void make_branch_at() {
    if (session_.state().snapshots.empty()) return;
    session_.create_branch_at(fresh("b"), any(session_.state().snapshots));
  }
  void remove_a_snapshot() {
    if (!session_.state().snapshots.empty()) {
      session_.remove_snapshot(any(session_.state().snapshots));
    }
  }
  void remove_a_branch() {
    if (session_.state().branches.size() > 1) session_.remove_branch(branch());
  }
  std::string fresh(const char* prefix) { return fmt::format("{}{}", prefix, ++names_); }

  Session& session_;
  std::mt19937_64 random_;
  Flavour flavour_;
  std::discrete_distribution<std::size_t> choose_;
  int names_ = 0;
};

void Script::step(ScriptStep step) {
  const std::string name = branch();
  switch (step) {
    case ScriptStep::small:
      return commit_small(name);
    case ScriptStep::many_small:
      for (int i = 0; i < 6; ++i) commit_small(name);
      return;
    case ScriptStep::zero:
      session_.pages(name).zero(below(session_.pages(name).count()));
      return session_.commit(name, false);
    case ScriptStep::medium:
      store_some(name, 40 + below(200));
      return session_.commit(name, false);
    case ScriptStep::large:
      fill_some(name, 2 + below(6));
      return session_.commit(name, false);
    case ScriptStep::checkpoint:
      store_some(name, 1 + below(4));
      return session_.commit(name, true);
    case ScriptStep::snapshot:
      store_some(name, below(3));
      return session_.snapshot(name, fresh("s"));
    case ScriptStep::branch:
      return session_.create_branch(fresh("e"), 1 + below(6));
    case ScriptStep::branch_at:
      return make_branch_at();
    case ScriptStep::remove_snapshot:
      return remove_a_snapshot();
    case ScriptStep::remove_branch:
      return remove_a_branch();
    case ScriptStep::reopen:
      session_.close_writer(name);
      return session_.open_writer(name);
    case ScriptStep::grow:
      return grow(name);
    case ScriptStep::huge:
      return commit_huge(name);
    case ScriptStep::gc:
      return session_.collect_garbage(chance(50), chance(50) ? 3 : 0);
  }
}

}  // namespace

const char* flavour_name(Flavour flavour) {
  return flavour == Flavour::repeats ? "repeats" : weights_of(flavour).name;
}

// Huge ones cost most and show least; repeats cost as much.
Flavour flavour_of(std::uint64_t seed) {
  if (seed % 41 == 40) return Flavour::huge;
  if (seed % 41 == 39) return Flavour::repeats;
  return static_cast<Flavour>(seed % 7);
}

std::uint64_t seed_of_repeats(std::uint64_t n) { return 41 * n + 39; }

// As small as the format allows: everything happens within few operations.
format::Superblock options_for(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  format::Superblock options;
  const Flavour flavour = flavour_of(seed);
  options.journal_half_bytes = format::kMinJournalHalfBytes;
  options.block_bytes = flavour == Flavour::huge ? 64u << 10 : 4096u << random() % 3;
  options.pack_bytes = flavour == Flavour::rolls     ? 4096u << random() % 2
                       : flavour == Flavour::garbage ? 4096u << random() % 6
                       : flavour == Flavour::huge    ? 64u << 20
                                                     : 8192u << random() % 4;
  options.compression = static_cast<base::Compression>(random() % 3);
  if (flavour == Flavour::repeats) {
    options.block_bytes = 16384u << random() % 3;
    options.pack_bytes = 32768u << random() % 4;  // a commit takes three of the smallest
    options.compression = random() % 2 == 0 ? base::Compression::lz4 : base::Compression::zstd;
  }
  options.encrypted = seed >= kEncryptedSeeds;
  return options;
}

void run_script(Session& session, std::uint64_t seed, std::size_t steps) {
  if (flavour_of(seed) == Flavour::repeats) return run_repeats(session, seed, steps);
  Script(session, seed).run(steps);
}

SimSession session_on_new_store(std::uint64_t seed) {
  SimFs fs;
  create_store_on(fs, kStorePath, options_for(seed));
  StoreState empty;
  empty.exists = true;
  return SimSession(fs.disk(), empty);
}

std::unique_ptr<SimSession> simulate_script(std::uint64_t seed, std::size_t steps) {
  std::unique_ptr<SimSession> out(new SimSession(session_on_new_store(seed)));
  run_script(out->session, seed, steps);
  return out;
}

}  // namespace vellum::crash
