#include "crash/kill_workload_lib.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>

#include "region/api/store_impl.hpp"

namespace vellum::crash {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kWordsPerPage = kPage / 8;
constexpr std::ptrdiff_t kMovedWords = 125;
constexpr std::uint64_t kMaxBytes = 2u << 20;

using Words = std::span<std::uint64_t>;

void fill_stretch(Words words, std::mt19937_64& random, std::uint64_t longest) {
  const std::uint64_t first = random() % words.size();
  const std::uint64_t count = 1 + random() % std::min(longest, words.size() - first);
  // Half of the ranges hold compressible content.
  const std::uint64_t mask = random() % 2 == 0 ? 255 : ~std::uint64_t{0};
  for (std::uint64_t& word : words.subspan(first, count)) word = random() & mask;
}

void write_pages(Words words, std::mt19937_64& random, std::uint64_t pages, std::uint64_t longest) {
  const std::uint64_t total = words.size() / kWordsPerPage;
  for (std::uint64_t i = 0; i < pages; ++i) {
    fill_stretch(words.subspan(random() % total * kWordsPerPage, kWordsPerPage), random, longest);
  }
}

// More incompressible bytes than a journal half takes, and some pages of zeros.
void write_most(Words words, std::mt19937_64& random) {
  for (std::uint64_t at = 0; at < words.size(); at += kWordsPerPage) {
    const std::uint64_t what = random() % 8;
    const Words page = words.subspan(at, kWordsPerPage);
    if (what == 0) std::fill(page.begin(), page.end(), 0);
    if (what >= 3) std::generate(page.begin(), page.end(), std::ref(random));
  }
}

// The stores of a step, identical in the model and in the region.
void write_step(const KillWorkload::WorkloadStep& step, void* data, std::uint64_t bytes) {
  const Words words(static_cast<std::uint64_t*>(data), bytes / 8);
  std::mt19937_64 random(step.seed);
  switch (step.what) {
    case KillStep::large_commit:
    case KillStep::import_branch:
      return write_most(words, random);
    case KillStep::moved_commit:
      std::rotate(words.begin(), words.begin() + kMovedWords, words.end());
      return;
    case KillStep::medium_commit:
      return write_pages(words, random, 4 + random() % 16, 64);
    default:
      return write_pages(words, random, 1 + random() % 3, 3);
  }
}

Bytes stream_of(const KillWorkload::WorkloadStep& step) {
  std::mt19937_64 random(step.seed);
  Bytes content((20 + random() % 60) * kPage);
  write_step(step, content.data(), content.size());
  return content;
}

std::uint64_t grown(std::uint64_t bytes) { return bytes + 7 * kPage; }

// The model: the content of the store, and the changes of a step.
class Model {
 public:
  NamedContents state;

  void apply(const KillWorkload::WorkloadStep& step) {
    switch (step.what) {
      case KillStep::create_store:
      case KillStep::rollback:
      case KillStep::reopen:
      case KillStep::read_version:
        return;
      case KillStep::create_region:
        state["main"] = std::make_shared<const Bytes>(kKillRegionBytes);
        return;
      case KillStep::make_branch:
        state[step.name] = state.at(step.other);
        return;
      case KillStep::remove_snapshot:
        state.erase(step.name);
        return;
      case KillStep::commit_branch:
        return write(step, step.name);
      case KillStep::import_branch:
        return import(step);
      case KillStep::snapshot:
        write(step, "main");
        state[step.name] = state.at("main");
        return;
      default:
        return write(step, "main");
    }
  }

 private:
  // A region never shrinks.
  void import(const KillWorkload::WorkloadStep& step) {
    Bytes content = stream_of(step);
    const auto before = state.find(step.name);
    if (before != state.end()) content.resize(std::max(content.size(), before->second->size()));
    state[step.name] = std::make_shared<const Bytes>(std::move(content));
  }
  void write(const KillWorkload::WorkloadStep& step, const std::string& branch) {
    Bytes content = *state.at(branch);
    if (step.what == KillStep::grow) content.resize(grown(content.size()));
    write_step(step, content.data(), content.size());
    state[branch] = std::make_shared<const Bytes>(std::move(content));
  }
};

// The frequency of each step, in addition to the two that create the store.
using Share = std::pair<KillStep, int>;
constexpr Share kShares[] = {
    {KillStep::small_commit, 14}, {KillStep::medium_commit, 6}, {KillStep::large_commit, 6},
    {KillStep::moved_commit, 3},  {KillStep::snapshot, 6},      {KillStep::rollback, 3},
    {KillStep::reopen, 4},        {KillStep::grow, 2},          {KillStep::make_branch, 2},
    {KillStep::commit_branch, 3}, {KillStep::import_branch, 4}, {KillStep::remove_snapshot, 1},
    {KillStep::read_version, 6}};
constexpr Share kBackgroundShares[] = {{KillStep::small_commit, 10},
                                       {KillStep::medium_commit, 60},
                                       {KillStep::snapshot, 1},
                                       {KillStep::reopen, 2},
                                       {KillStep::read_version, 3}};

std::vector<KillStep> shuffled_steps(std::span<const Share> shares, std::mt19937_64& random) {
  std::vector<KillStep> steps;
  for (const auto& [step, count] : shares) {
    steps.insert(steps.end(), static_cast<std::size_t>(count), step);
  }
  std::shuffle(steps.begin(), steps.end(), random);
  // A snapshot to read and to branch from.
  steps.insert(steps.begin(), {KillStep::create_store, KillStep::create_region,
                               KillStep::large_commit, KillStep::snapshot});
  return steps;
}

bool is_snapshot_name(const std::string& name) { return name.starts_with("s"); }

// The kth name that is (or is not) a snapshot and is not main; empty: none.
std::string choose(const NamedContents& state, bool snapshots, std::uint64_t k) {
  std::vector<std::string> names;
  for (const auto& [name, content] : state) {
    if (name != "main" && is_snapshot_name(name) == snapshots) names.push_back(name);
  }
  return names.empty() ? std::string() : names[k % names.size()];
}

KillWorkload::WorkloadStep make_step(KillStep what, std::size_t index, std::mt19937_64& random,
                                     const NamedContents& state) {
  KillWorkload::WorkloadStep step{what, random(), {}, {}};
  const std::string number = std::to_string(index);
  switch (what) {
    case KillStep::snapshot:
      step.name = "s" + number;
      break;
    case KillStep::make_branch:
      step.name = "b" + number;
      step.other = choose(state, true, random());
      break;
    case KillStep::commit_branch:
      step.name = choose(state, false, random());
      break;
    case KillStep::import_branch:
      step.name = random() % 2 == 0 ? choose(state, false, random()) : std::string();
      if (step.name.empty()) step.name = "i" + number;
      break;
    case KillStep::remove_snapshot:
    case KillStep::read_version:
      step.name = choose(state, true, random());
      break;
    default:
      step.name = "main";
  }
  // The step's precondition does not hold.
  if (step.name.empty() || (what == KillStep::make_branch && step.other.empty())) {
    step = {KillStep::small_commit, step.seed, "main", {}};
  }
  return step;
}

// Runs the steps.
class Runner {
 public:
  Runner(const std::string& path, Engine engine, bool in_background, KillBoard& board)
      : path_(path), options_(kill_region_options(engine)), board_(board) {
    // Commits collect garbage all the time: a call has the same number in each run.
    policy_.gc = {64u << 10, 16u << 10, 16u << 10, true};
    if (in_background) policy_.checkpoints = {0, false};
  }

  void run(const KillWorkload::WorkloadStep& step, const NamedContents& before) {
    switch (step.what) {
      case KillStep::create_store:
        at(Activity::creating);
        take(Store::create(path_, kill_store_options()));
        return;
      case KillStep::create_region:
        at(Activity::creating);
        region_ = store().create_region("main", kKillRegionBytes, options_);
        return;
      case KillStep::snapshot:
        write(step, region_);
        at(Activity::snapshot);
        region_.snapshot(step.name);
        return;
      case KillStep::rollback:
        write(step, region_);
        at(Activity::committing);
        region_.rollback();
        return;
      case KillStep::reopen:
        return reopen();
      case KillStep::grow:
        at(Activity::committing);
        region_.grow(grown(region_.size_bytes()));
        return write_and_commit(step, region_);
      case KillStep::make_branch:
        at(Activity::names);
        return store().create_branch(step.name, step.other);
      case KillStep::commit_branch:
        return commit_branch(step);
      case KillStep::import_branch:
        at(Activity::importing);
        return import(step);
      case KillStep::remove_snapshot:
        at(Activity::names);
        return store().remove_snapshot(step.name);
      case KillStep::read_version:
        return read_version(step.name, *before.at(step.name));
      default:
        return write_and_commit(step, region_);
    }
  }

  void close() {
    at(Activity::closing);
    region_.close();
  }

 private:
  Store& store() { return store_.back(); }

  void at(Activity activity) {
    begin_operation();
    board_.activity = activity;
  }

  void write(const KillWorkload::WorkloadStep& step, Region& region) {
    at(Activity::touching);
    write_step(step, region.data(), region.size_bytes());
  }
  void write_and_commit(const KillWorkload::WorkloadStep& step, Region& region) {
    write(step, region);
    at(Activity::committing);
    region.commit();
  }

  void take(Store store) {
    StoreAccess::core_of(store)->set_writer_policy(policy_);
    store_.push_back(std::move(store));
  }

  // A new handle: nothing is in its caches.
  void reopen() {
    close();
    store_.clear();
    at(Activity::opening);
    take(Store::open(path_));
    region_ = store().open_region("main", options_);
  }

  void commit_branch(const KillWorkload::WorkloadStep& step) {
    at(Activity::opening);
    Region branch = store().open_region(step.name, options_);
    write_and_commit(step, branch);
    at(Activity::closing);
    branch.close();
  }

  void import(const KillWorkload::WorkloadStep& step) {
    const Bytes content = stream_of(step);
    std::size_t read_bytes = 0;
    store().import_stream(
        step.name,
        [&](void* to, std::size_t capacity_bytes) {
          const std::size_t n = std::min(capacity_bytes, content.size() - read_bytes);
          std::memcpy(to, content.data() + read_bytes, n);
          read_bytes += n;
          return n;
        },
        content.size(), "");
  }

  void read_version(const std::string& name, const Bytes& expected) {
    at(Activity::opening);
    // Its own handle: the blocks are already in the cache of a shared one.
    const Region version = Store::open(path_).open_version(name, options_);
    at(Activity::touching);
    if (version.size_bytes() != expected.size() ||
        std::memcmp(version.data(), expected.data(), expected.size()) != 0) {
      throw std::runtime_error("version " + name + " has changed");
    }
    at(Activity::reading);
    Bytes again(expected.size());
    store().read(name, 0, again.data(), again.size());
    if (again != expected) throw std::runtime_error("version " + name + " is read otherwise");
  }

  std::string path_;
  store::WriterPolicy policy_;
  RegionOptions options_;
  KillBoard& board_;
  std::vector<Store> store_;  // none or one
  Region region_;
};

}  // namespace

const char* activity_name(Activity activity) {
  static constexpr const char* kNames[kActivities] = {"creating", "touching", "commit",
                                                      "snapshot", "opening",  "closing",
                                                      "reading",  "names",    "importing"};
  return kNames[static_cast<std::size_t>(activity)];
}

RegionOptions kill_region_options(Engine engine) {
  RegionOptions options;
  options.engine = engine;
  options.capacity_bytes = kMaxBytes;
  options.encode_threads = 0;
  return options;
}

StoreOptions kill_store_options() {
  StoreOptions options;
  options.journal_half_bytes = 64u << 10;
  options.pack_bytes = 1u << 20;
  return options;
}

namespace {

KillWorkload workload_of(std::span<const Share> shares, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  KillWorkload workload;
  Model model;
  for (const KillStep what : shuffled_steps(shares, random)) {
    workload.states.push_back(model.state);
    workload.steps.push_back(make_step(what, workload.steps.size(), random, model.state));
    model.apply(workload.steps.back());
  }
  workload.states.push_back(model.state);
  return workload;
}

}  // namespace

KillWorkload make_kill_workload(std::uint64_t seed) { return workload_of(kShares, seed); }

KillWorkload make_background_workload(std::uint64_t seed) {
  KillWorkload workload = workload_of(kBackgroundShares, seed);
  workload.in_background = true;
  return workload;
}

void run_kill_workload(const KillWorkload& workload, const std::string& path, Engine engine,
                       KillBoard& board) {
  Runner runner(path, engine, workload.in_background, board);
  for (std::size_t i = 0; i < workload.steps.size(); ++i) {
    board.started = i + 1;
    runner.run(workload.steps[i], workload.states[i]);
    board.done = i + 1;
  }
  runner.close();
}

}  // namespace vellum::crash
