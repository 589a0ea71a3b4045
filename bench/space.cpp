// bench space: what gc gives back, and what it costs.
//
// Bytes: a region full of integers and a snapshot after each step that changes 1 % of its pages;
// then only every second snapshot, or every tenth, is kept, and gc runs. Beside it: a store that
// went the same way and never made the other snapshots; collected, too. The snapshot before the
// first step is in both, and far larger than the rest; the ratio of what came on top says more.
//
// Seconds: gc of one removed snapshot, and of none, in a store, in one of four times as many
// snapshots, and in one whose region is four times as large and changes by the same. Each in a
// process of its own.
//
//   bench_space [--json FILE] [--dir DIR] [--mib 256] [--snapshots 60] [--rounds 5]
#include <fmt/format.h>

#include <filesystem>
#include <vellum/store.hpp>

#include "child_lib.hpp"
#include "report_lib.hpp"
#include "workload_lib.hpp"

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

// Removes all snapshots but the first and one in `keep_every`, collects, and takes the store away.
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
  report.figure(name + ", never made, bytes", space.never);
  report.figure(name + ", first snapshot, bytes", space.first);
  report.figure(name + ", freed, bytes", space.freed);
  report.figure(name + ", freeable, bytes", space.freeable);
  report.figure(name + ", gc_s", space.gc_s);
  report.target(name + ": after gc / never made", space.ratio(), 1.1);
  report.target(name + ": the same, on top of the first", space.ratio_on_top(), 1.5);
  // A hole splits what the file system has in one piece; its own map of the file may grow a block.
  report.target(name + ": freed / freeable", freed_share, 0.9, false);
}

void run_bytes(const bench::Options& options, std::size_t bytes, std::size_t snapshots,
               bench::Report& report) {
  bench::Table table({"packs", "before", "after gc", "never made", "ratio",
                      "on top of the first: after", "never made", "ratio", "freed", "of freeable",
                      "gc ms"});
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

// A removal and its gc; a second one then finds nothing.
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
  collect_nothing(path);  // what writing has left
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

void run(const bench::Options& options) {
  const std::size_t bytes = options.number("mib", 256) << 20;
  const std::size_t snapshots = options.number("snapshots", 60);
  if (bytes < 100 * bench::kPageBytes || snapshots < 10) {
    throw std::runtime_error("--mib: 1 or more; --snapshots: 10 or more");
  }
  bench::Report report("space");
  run_bytes(options, bytes, snapshots, report);
  run_cost(options, bytes, snapshots, report);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("space", argc, argv, run); }
