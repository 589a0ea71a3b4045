// bench stl: containers of 64-bit integers that grow in equal steps, a snapshot after each: the
// benchmark of Privateer's papers (Youssef et al., HPEC 2021 and 2022).
//
// Every container and order of keys runs at Vellum's defaults, without compression, and with deltas
// off at several block sizes (whole changed pages, compressed by blocks: the best case of a block
// store). The peers, in the same run: the full copies that a program without versions writes after
// each step (the region's pages in use, written to a file and flushed), and zstd -3 --patch-from of
// these copies. Seconds are medians over the rounds; in a round all configurations run in turn,
// each round starting with the next one.
//
//   bench_stl [--json FILE] [--dir DIR] [--inserts 2000000] [--steps 20] [--rounds 1]
//             [--only CONTAINER] [--keys sequential|random] [--copies 1] [--patch
//             plain|single|none]
//             [--blocks 64,256,1024,4096,32768,131072]   (KiB, deltas off)
//             [--configs default]   (only those whose name starts with this, for large runs)
#include <fmt/format.h>

#include <algorithm>
#include <boost/container/deque.hpp>
#include <boost/container/list.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <sstream>
#include <vellum/heap.hpp>
#include <vellum/store.hpp>

#include "lib/copies.hpp"
#include "lib/report.hpp"

namespace {

using Key = std::uint64_t;
using List = boost::container::list<Key, vellum::allocator<Key>>;
using Deque = boost::container::deque<Key, vellum::allocator<Key>>;
using HashSet = vellum::unordered_map<Key, std::uint8_t>;

struct Load {
  std::size_t inserts, steps;
  bool random_keys;
};

// The keys, a step at a time; the same for every configuration.
class Keys {
 public:
  explicit Keys(const Load& load) : load_(load) {}
  const std::vector<Key>& next() {
    const std::size_t first = load_.inserts * step_ / load_.steps;
    const std::size_t last = load_.inserts * (step_ + 1) / load_.steps;
    ++step_;
    keys_.clear();
    for (std::size_t i = first; i < last; ++i) keys_.push_back(load_.random_keys ? random_() : i);
    return keys_;
  }

 private:
  Load load_;
  std::size_t step_ = 0;
  std::mt19937_64 random_{1};
  std::vector<Key> keys_;
};

struct Config {
  std::string name;
  vellum::StoreOptions store;
  bool async = false;  // snapshot_async()
};

struct Result {
  double insert_seconds = 0, snapshot_seconds = 0, bytes = 0;
  double seconds() const { return insert_seconds + snapshot_seconds; }
};

// With `peers`, copies of each step's state are written instead of snapshots.
template <typename Container, typename Insert>
Result run_container(const std::string& directory, const Config& config, const Load& load,
                     Insert insert, bench::Peers* peers) {
  const std::string path = directory + "/store";
  Result result;
  std::vector<std::future<vellum::CommitReport>> reports;
  {
    auto store = vellum::Store::create(path, config.store);
    vellum::RegionOptions options;
    auto region = store.create_region("main", 64u << 20, options);
    vellum::Heap heap(region);
    auto& container = *heap.find_or_construct<Container>("container");
    Keys keys(load);
    for (std::size_t step = 0; step < load.steps; ++step) {
      const std::vector<Key>& now = keys.next();
      auto start = bench::Clock::now();
      for (const Key key : now) insert(container, key);
      result.insert_seconds += bench::seconds_since(start);
      if (peers != nullptr) {
        peers->add(region);
        continue;
      }
      start = bench::Clock::now();
      const std::string name = "step" + std::to_string(step);
      if (config.async) {
        reports.push_back(region.snapshot_async(name));
      } else {
        region.snapshot(name);
      }
      result.snapshot_seconds += bench::seconds_since(start);
    }
    const auto start = bench::Clock::now();
    for (auto& report : reports) report.get();
    result.snapshot_seconds += bench::seconds_since(start);
  }
  result.bytes = static_cast<double>(vellum::Store::open(path).stat().stored_bytes);
  std::filesystem::remove_all(path);
  return result;
}

using Runner = std::function<Result(const std::string&, const Config&, const Load&, bench::Peers*)>;

template <typename Container, typename Insert>
Runner runner(Insert insert) {
  return [insert](const std::string& directory, const Config& config, const Load& load,
                  bench::Peers* peers) {
    return run_container<Container>(directory, config, load, insert, peers);
  };
}

std::vector<std::pair<std::string, Runner>> containers() {
  const auto push = [](auto& c, Key key) { c.push_back(key); };
  const auto insert = [](auto& c, Key key) { c.insert(key); };
  const auto assign = [](auto& c, Key key) { c[key] = 1; };
  return {{"vector", runner<vellum::vector<Key>>(push)},
          {"deque", runner<Deque>(push)},
          {"list", runner<List>(push)},
          {"map", runner<vellum::map<Key, Key>>(assign)},
          {"set", runner<vellum::set<Key>>(insert)},
          {"unordered_map", runner<vellum::unordered_map<Key, Key>>(assign)},
          {"unordered_set", runner<HashSet>(assign)}};
}

// `only`: the prefix of the names; empty: all.
std::vector<Config> configs(const std::string& block_list, const std::string& only) {
  std::vector<Config> all(3);
  all[0].name = "default";
  all[1].name = "default, async";
  all[1].async = true;
  all[2].name = "uncompressed";
  all[2].store.encoding.compression = vellum::Encoding::Compression::none;
  std::istringstream blocks(block_list);
  for (std::string kib; std::getline(blocks, kib, ',');) {
    Config c;
    const auto number = static_cast<std::uint32_t>(std::stoul(kib));
    c.name = "no deltas " + (number < 1024 ? kib + "K" : std::to_string(number / 1024) + "M");
    c.store.encoding.block_bytes = number << 10;
    c.store.encoding.deltas = c.store.encoding.filters = c.store.encoding.grow_blocks = false;
    all.push_back(c);
  }
  std::erase_if(all, [&](const Config& c) { return c.name.rfind(only, 0) != 0; });
  return all;
}

// One configuration of a row, over all rounds.
struct Series {
  std::vector<Result> rounds;
  double bytes() const { return rounds.front().bytes; }
  double seconds() const { return bench::median_of(rounds, &Result::seconds); }
  double insert_seconds() const { return bench::median_of(rounds, &Result::insert_seconds); }
  double snapshot_seconds() const { return bench::median_of(rounds, &Result::snapshot_seconds); }
};

struct Row {
  std::string name;
  bool random_tree;  // where whole changed pages cost most
  std::vector<Series> series;
  std::optional<bench::Peers> peers;
};

Row measure(const std::string& name, const Runner& runner, const std::vector<Config>& configs,
            const Load& load, const bench::Options& options) {
  const bool tree = name == "map" || name == "set" || name == "unordered_map";
  Row row{name + (load.random_keys ? ", random" : ", sequential"), load.random_keys && tree,
          std::vector<Series>(configs.size()), std::nullopt};
  const std::uint64_t rounds = std::max<std::uint64_t>(options.number("rounds", 1), 1);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < configs.size(); ++turn) {
      const std::size_t i = (round + turn) % configs.size();
      row.series[i].rounds.push_back(runner(options.scratch(), configs[i], load, nullptr));
    }
  }
  if (options.number("copies", 1) != 0) {
    // A separate run: a copy leaves the caches and the disk in another state.
    row.peers.emplace(options.scratch() + "/copy",
                      bench::patches_named(options.text("patch", "plain")));
    runner(options.scratch(), Config{"copies", {}}, load, &*row.peers);
  }
  return row;
}

std::string cell(double bytes, double seconds) {
  return fmt::format("{} {:.2f}s", bench::human_bytes(bytes), seconds);
}

// The time of a program with full copies: the same inserts, and the copies.
double copy_seconds(const Row& row) {
  return row.series[0].insert_seconds() + row.peers->copy_seconds();
}

struct Tables {
  explicit Tables(const std::vector<Config>& configs)
      : absolute(heading("container, keys", configs, {"full copies", "patch-from"})),
        ratios(heading("/ full copies: bytes, seconds", configs, {"patch-from"})) {}

  void add(const Row& row) {
    std::vector<std::string> cells{row.name}, parts{row.name};
    for (const Series& s : row.series) cells.push_back(cell(s.bytes(), s.seconds()));
    if (row.peers) {
      const double copies = row.peers->copy_bytes(), patches = row.peers->patch_bytes();
      cells.push_back(cell(copies, copy_seconds(row)));
      cells.push_back(patches > 0 ? bench::human_bytes(patches) : "-");
      for (const Series& s : row.series) {
        parts.push_back(
            fmt::format("{:.3g} {:.2f}", s.bytes() / copies, s.seconds() / copy_seconds(row)));
      }
      parts.push_back(patches > 0 ? fmt::format("{:.3g}", patches / copies) : "-");
      ratios.row(parts);
    }
    fmt::print(stderr, "{}\n", fmt::join(cells, "  "));
    absolute.row(cells);
  }

  bench::Table absolute, ratios;

 private:
  static std::vector<std::string> heading(const std::string& first,
                                          const std::vector<Config>& configs,
                                          const std::vector<std::string>& more) {
    std::vector<std::string> out{first};
    for (const Config& c : configs) out.push_back(c.name);
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
};

void add_figures(bench::Report& report, const Row& row, const std::vector<Config>& configs) {
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const std::string name = row.name + ", " + configs[i].name;
    const Series& s = row.series[i];
    report.figure(name + ", bytes", s.bytes());
    report.figure(name + ", seconds", s.seconds());
    report.figure(name + ", insert seconds", s.insert_seconds());
    report.figure(name + ", snapshot seconds", s.snapshot_seconds());
  }
  if (!row.peers) return;
  report.figure(row.name + ", full copies, bytes", row.peers->copy_bytes());
  report.figure(row.name + ", full copies, seconds", copy_seconds(row));
  if (row.peers->patch_bytes() > 0) {
    report.figure(row.name + ", patch-from, bytes", row.peers->patch_bytes());
  }
}

// Compares the default with the best configuration without deltas, which differs for bytes and for
// seconds. Seconds are mostly those of the inserts, which are the same for all: the figures
// "snapshot seconds" show the difference.
void add_targets(bench::Report& report, const Row& row, const std::vector<Config>& configs) {
  if (configs[0].name != "default") return;
  const auto compare = [&](const char* what, double (Series::*of)() const, double bound) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < configs.size(); ++i) {
      if (configs[i].store.encoding.deltas) continue;
      if (best == 0 || (row.series[i].*of)() < (row.series[best].*of)()) best = i;
    }
    if (best == 0) return;
    report.target(
        fmt::format("{}: {} / best without deltas ({})", row.name, what, configs[best].name),
        (row.series[0].*of)() / (row.series[best].*of)(), bound);
  };
  compare("bytes", &Series::bytes, row.random_tree ? 0.25 : 1.0);
  compare("seconds", &Series::seconds, 1.0);
  if (row.peers && row.peers->patch_bytes() > 0) {
    report.target(row.name + ": bytes / patch-from",
                  row.series[0].bytes() / row.peers->patch_bytes(), 1.5);
  }
}

void run(const bench::Options& options) {
  const std::string only = options.text("only", ""), keys = options.text("keys", "");
  const auto all =
      configs(options.text("blocks", "64,256,1024,4096,32768,131072"), options.text("configs", ""));
  if (all.empty()) throw std::runtime_error("no such configuration");
  Tables tables(all);
  bench::Report report("stl");
  for (const auto& [name, runner] : containers()) {
    if (!only.empty() && name != only) continue;
    for (const bool random_keys : {false, true}) {
      if (!keys.empty() && keys != (random_keys ? "random" : "sequential")) continue;
      const Load load{options.number("inserts", 2'000'000), options.number("steps", 20),
                      random_keys};
      const Row row = measure(name, runner, all, load, options);
      tables.add(row);
      add_figures(report, row, all);
      add_targets(report, row, all);
    }
  }
  tables.absolute.print();
  fmt::print("\n");
  tables.ratios.print();
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("stl", argc, argv, run); }
