// bench space: the space that gc frees, and its cost.
//
// Bytes: a region full of integers and a snapshot after each step that changes 1 % of its pages;
// then only every second snapshot, or every tenth, is kept, and gc runs. The peer: a store with the
// same steps that never had the other snapshots; collected, too. The snapshot before the first step
// is in both, and far larger than the rest; the ratio of the later bytes is more informative.
//
// Seconds: gc of one removed snapshot, and of none, in a store, in one of four times as many
// snapshots, and in one whose region is four times as large with the same changes. Each in a
// separate process.
//
// Automatic gc: 1 MiB of a region of 64 MiB is rewritten whole, 2,000 times, with and without the
// regions' background gc, in alternating runs of 100 commits: the store's peak size, the size
// needed, and the time of commits: percentiles of each run, and the medians of these, since
// disturbances of the machine come in bursts. And mixed load: words and whole blocks, and snapshots
// of which the last ten are kept.
//
//   bench_space [--json FILE] [--dir DIR] [--mib 256] [--snapshots 60] [--rounds 5]
//               [--rewrites 2000] [--only-steady 0]
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <random>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

constexpr auto kUpdates = {bench::Update::words, bench::Update::counters, bench::Update::same_lines,
                           bench::Update::pages, bench::Update::same_pages};

using bench::History;
using bench::make_history;

std::uint64_t pack_bytes(const vellum::Store& store) {
  auto copy = store;
  vellum::GcOptions look;
  look.dry_run = true;
  return copy.collect_garbage(look).pack_bytes;
}

struct Space {
  double first = 0, before = 0, after = 0, never = 0, freed = 0, freeable = 0, gc_s = 0;
  double ratio() const { return after / never; }
  double ratio_on_top() const { return (after - first) / (never - first); }
};

// Removes all snapshots but the first and one in `keep_every`, collects, and removes the store.
Space measure(const std::string& path, std::size_t steps, std::size_t keep_every) {
  Space space;
  auto store = vellum::Store::open(path);
  for (std::size_t step = 1; step <= steps; ++step) {
    if (step % keep_every != 0) store.remove_snapshot(std::to_string(step));
  }
  const auto start = bench::Clock::now();
  const auto report = store.collect_garbage();
  space.gc_s = bench::seconds_since(start);
  space.before = static_cast<double>(report.pack_bytes);
  space.freed = static_cast<double>(report.freed_bytes);
  space.freeable = static_cast<double>(report.freeable_bytes);
  space.after = static_cast<double>(pack_bytes(store));
  std::filesystem::remove_all(path);
  return space;
}

// `first`: of a store that has the first snapshot only, its bytes.
Space thin_out(const std::string& directory, History history, std::size_t keep_every,
               double first) {
  const std::string path = directory + "/thinned", peer = directory + "/never";
  make_history(path, history);
  Space space = measure(path, history.steps, keep_every);
  history.snapshot_every = keep_every;
  make_history(peer, history);
  space.never = measure(peer, 0, 1).after;
  space.first = first;
  return space;
}

void report_space(bench::Table& table, bench::Report& report, const std::string& name,
                  const Space& space) {
  const double freed_share = space.freeable > 0 ? space.freed / space.freeable : 1;
  table.row({name, bench::human_bytes(space.before), bench::human_bytes(space.after),
             bench::human_bytes(space.never), bench::fixed(space.ratio(), 3),
             bench::human_bytes(space.after - space.first),
             bench::human_bytes(space.never - space.first), bench::fixed(space.ratio_on_top(), 2),
             bench::human_bytes(space.freed), bench::fixed(freed_share, 4),
             bench::fixed(space.gc_s * 1e3, 1)});
  report.figure(name + ", before, bytes", space.before);
  report.figure(name + ", after, bytes", space.after);
  report.figure(name + ", never created, bytes", space.never);
  report.figure(name + ", first snapshot, bytes", space.first);
  report.figure(name + ", freed, bytes", space.freed);
  report.figure(name + ", freeable, bytes", space.freeable);
  report.figure(name + ", gc_s", space.gc_s);
  report.target(name + ": after gc / never created", space.ratio(), 1.1);
  report.target(name + ": the same, on top of the first", space.ratio_on_top(), 1.5);
  // A hole splits a contiguous range of the file; the file system's own extent map of the file may
  // grow by a block.
  report.target(name + ": freed / freeable", freed_share, 0.9, false);
}

void run_bytes(const bench::Options& options, std::size_t bytes, std::size_t snapshots,
               bench::Report& report) {
  bench::Table table({"packs", "before", "after gc", "never created", "ratio",
                      "on top of the first: after", "never created", "ratio", "freed",
                      "of freeable", "gc ms"});
  const std::string only_first = options.scratch() + "/first";
  make_history(only_first, {bench::Update::words, bytes, 0, 0});
  const double first = measure(only_first, 0, 1).after;
  for (const std::size_t keep_every : {std::size_t{2}, std::size_t{10}}) {
    for (const auto update : kUpdates) {
      const History history{update, bytes, bytes / bench::kPageBytes / 100,
                            snapshots / keep_every * keep_every};
      const auto name = fmt::format("{}, 1 of {} kept", bench::update_name(update), keep_every);
      report_space(table, report, name, thin_out(options.scratch(), history, keep_every, first));
    }
  }
  table.print();
}

struct Cost {
  double one_s = 0, freed = 0, nothing_s = 0;
};

// A removal and its gc; a second gc then finds nothing.
Cost remove_one(const std::string& path, std::size_t step) {
  return bench::in_child([&] {
    Cost cost;
    auto store = vellum::Store::open(path);
    store.remove_snapshot(std::to_string(step));
    auto start = bench::Clock::now();
    cost.freed = static_cast<double>(store.collect_garbage().freed_bytes);
    cost.one_s = bench::seconds_since(start);
    return cost;
  });
}

double collect_nothing(const std::string& path) {
  return bench::in_child([&] {
    auto store = vellum::Store::open(path);
    const auto start = bench::Clock::now();
    store.collect_garbage();
    return bench::seconds_since(start);
  });
}

std::vector<Cost> cost_of_gc(const bench::Options& options, const History& history) {
  const std::string path = options.scratch() + "/cost";
  const std::size_t rounds = options.number("rounds", 5);
  make_history(path, history);
  collect_nothing(path);  // after the garbage of the writing
  std::vector<Cost> costs;
  for (std::size_t i = 1; i <= rounds; ++i) {
    costs.push_back(remove_one(path, history.steps * i / (rounds + 1)));
    costs.back().nothing_s = collect_nothing(path);
  }
  std::filesystem::remove_all(path);
  return costs;
}

void report_cost(bench::Table& table, bench::Report& report, const std::string& name,
                 const std::vector<Cost>& costs, const std::vector<Cost>& plain) {
  const auto of = [](const std::vector<Cost>& of_costs, double Cost::* field) {
    return bench::median_of(of_costs, field);
  };
  const double ratio = of(costs, &Cost::one_s) / of(plain, &Cost::one_s);
  table.row({name, bench::human_bytes(of(costs, &Cost::freed)),
             bench::fixed(of(costs, &Cost::one_s) * 1e3, 2),
             bench::fixed(of(costs, &Cost::nothing_s) * 1e3, 2), bench::fixed(ratio, 2),
             bench::fixed(of(costs, &Cost::nothing_s) / of(plain, &Cost::nothing_s), 2)});
  report.figure(name + ", one removed, gc_s", of(costs, &Cost::one_s));
  report.figure(name + ", one removed, freed bytes", of(costs, &Cost::freed));
  report.figure(name + ", none removed, gc_s", of(costs, &Cost::nothing_s));
  if (&costs != &plain) {
    report.target(name + ": gc of one, / the plain store", ratio, 1.5);
  }
}

void run_cost(const bench::Options& options, std::size_t bytes, std::size_t snapshots,
              bench::Report& report) {
  bench::Table table(
      {"gc of one removed snapshot", "freed", "ms", "of none, ms", "one / plain", "none / plain"});
  for (const auto update : {bench::Update::words, bench::Update::same_pages}) {
    const History plain{update, bytes, bytes / bench::kPageBytes / 100, snapshots};
    History longer = plain, larger = plain;
    longer.steps *= 4;
    larger.bytes *= 4;
    const std::string name = bench::update_name(update);
    const auto of_plain = cost_of_gc(options, plain);
    report_cost(table, report, fmt::format("{}, {} snapshots", name, plain.steps), of_plain,
                of_plain);
    report_cost(table, report, fmt::format("{}, {} snapshots", name, longer.steps),
                cost_of_gc(options, longer), of_plain);
    report_cost(table, report, fmt::format("{}, region of {} MiB", name, larger.bytes >> 20),
                cost_of_gc(options, larger), of_plain);
  }
  fmt::print("\n");
  table.print();
}

constexpr std::size_t kSteadyBytes = 64u << 20, kPieceBytes = 1u << 20;
constexpr std::size_t kTurnCommits = 100;
constexpr double kSlackBytes = 64u << 20;

// A region that is written all the time, with its time and space.
class Steady {
 public:
  Steady(const std::string& path, bool background_gc, std::uint64_t seed)
      : store_(vellum::Store::create(path)), random_(seed) {
    vellum::RegionOptions options;
    options.background_gc = background_gc;
    region_ = store_.create_region("main", kSteadyBytes, options);
    for (std::size_t at = 0; at < kSteadyBytes; at += kPieceBytes) rewrite(at);
    region_.commit();
  }

  void rewrite_a_piece() {
    rewrite(random_() % (kSteadyBytes / kPieceBytes) * kPieceBytes);
    const auto start = bench::Clock::now();
    region_.commit();
    if (commits_ % kTurnCommits == 0) turns_ms_.emplace_back();
    turns_ms_.back().push_back(bench::seconds_since(start) * 1e3);
    look(commits_++ % 200 == 0);
  }

  // Mostly words; a block now and then; every ten commits a snapshot, and the removal of one.
  void mixed(std::size_t step) {
    if (step % 3 == 0) rewrite(random_() % (kSteadyBytes / kPieceBytes) * kPieceBytes);
    for (int i = 0; i < 200; ++i) words()[random_() % (kSteadyBytes / 8)] = random_();
    if (step % 10 != 0) {
      region_.commit();
    } else {
      region_.snapshot(fmt::format("{}", step));
      if (step > 100) store_.remove_snapshot(fmt::format("{}", step - 100));
    }
    look(step % 10 == 0 || step % 10 == 5);
  }

  // The maximum of the size over 1.3 times the needed size, in bytes; and the size needed at the
  // end.
  double most_over_bytes() const { return most_over_; }
  double most_bytes() const { return most_; }
  double needed_bytes() const { return needed_; }
  double commit_ms(double percent) const {
    return bench::median_of(
        turns_ms_, [&](const auto& turn_ms) { return bench::percentile(turn_ms, percent); });
  }

 private:
  std::uint64_t* words() { return static_cast<std::uint64_t*>(region_.data()); }
  void rewrite(std::size_t at) {
    for (std::size_t i = at / 8; i < (at + kPieceBytes) / 8; ++i) words()[i] = random_();
  }
  void look(bool afresh) {
    if (afresh) needed_ = static_cast<double>(store_.stat().pack_needed_bytes);
    double taken = 0;
    for (const auto& file : std::filesystem::directory_iterator(store_.path() + "/packs")) {
      struct stat status{};
      if (::stat(file.path().c_str(), &status) == 0) taken += static_cast<double>(status.st_blocks);
    }
    taken *= 512;
    most_ = std::max(most_, taken);
    most_over_ = std::max(most_over_, taken - 1.3 * needed_);
  }

  vellum::Store store_;
  vellum::Region region_;
  std::mt19937_64 random_;
  std::size_t commits_ = 0;
  std::vector<std::vector<double>> turns_ms_;
  double most_ = 0, most_over_ = 0, needed_ = 0;
};

void report_steady(bench::Table& table, bench::Report& report, const std::string& name,
                   const Steady& steady, bool held) {
  table.row(
      {name, bench::human_bytes(steady.needed_bytes()), bench::human_bytes(steady.most_bytes())});
  report.figure(name + ", needed, bytes", steady.needed_bytes());
  report.figure(name + ", at most, bytes", steady.most_bytes());
  if (held) {
    report.target(name + ": over 1.3 times what is needed / 64 MiB",
                  steady.most_over_bytes() / kSlackBytes, 1);
  }
}

void run_steady(const bench::Options& options, bench::Report& report) {
  const std::size_t rewrites = options.number("rewrites", 2000);
  bench::prefer_this_process();
  bench::Table table({"written all the time", "needed", "taken at most"});
  {
    Steady with(options.scratch() + "/with", true, 1);
    Steady without(options.scratch() + "/without", false, 1);
    for (std::size_t i = 0; i < 2 * rewrites; ++i) {
      (i / kTurnCommits % 2 == 0 ? with : without).rewrite_a_piece();
    }
    report_steady(table, report, "1 MiB rewritten", with, true);
    report_steady(table, report, "the same, switched off", without, false);
    for (const double percent : {50.0, 99.0}) {
      const double ms = with.commit_ms(percent), ms_without = without.commit_ms(percent);
      fmt::print("commit p{:.0f}, median of {} turns: {:.2f} ms, {:.2f} switched off\n", percent,
                 rewrites / kTurnCommits, ms, ms_without);
      report.figure(fmt::format("1 MiB rewritten, commit p{:.0f}, ms", percent), ms);
      report.figure(fmt::format("1 MiB rewritten, commit p{:.0f}, ms, switched off", percent),
                    ms_without);
      report.target(fmt::format("1 MiB rewritten: commit p{:.0f} / switched off", percent),
                    ms / ms_without, 1.1);
    }
  }
  Steady mixed(options.scratch() + "/mixed", true, 2);
  for (std::size_t step = 0; step < rewrites; ++step) mixed.mixed(step);
  report_steady(table, report, "mixed, with snapshots", mixed, true);
  fmt::print("\n");
  table.print();
}

void run(const bench::Options& options) {
  const std::size_t bytes = options.number("mib", 256) << 20;
  const std::size_t snapshots = options.number("snapshots", 60);
  if (bytes < 100 * bench::kPageBytes || snapshots < 10) {
    throw std::runtime_error("--mib: 1 or more; --snapshots: 10 or more");
  }
  bench::Report report("space");
  if (options.number("only-steady", 0) == 0) {
    run_bytes(options, bytes, snapshots, report);
    run_cost(options, bytes, snapshots, report);
  }
  run_steady(options, report);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("space", argc, argv, run); }
