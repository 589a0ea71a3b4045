// bench stl: containers of 64-bit integers that grow in equal steps, a snapshot after each: the
// benchmark of Privateer's papers (Youssef et al., HPEC 2021 and 2022).
//
// Every container and order of keys runs at Vellum's defaults, without compression, and with deltas
// off at several block sizes (whole changed pages, compressed by blocks: what a block store does at
// best). Beside it, in the same run, the full copies that a program without versions makes: the
// region's bytes in use, written to a file and flushed, after each step.
//
//   bench_stl [--json FILE] [--dir DIR] [--inserts 2000000] [--steps 20] [--only NAME]
//             [--blocks 64,1024,32768]   (KiB, deltas off)
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/container/deque.hpp>
#include <boost/container/list.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <sstream>
#include <vellum/heap.hpp>
#include <vellum/store.hpp>

#include "report_lib.hpp"

namespace {

using Key = std::uint64_t;
using List = boost::container::list<Key, vellum::allocator<Key>>;
using Deque = boost::container::deque<Key, vellum::allocator<Key>>;
using HashSet = vellum::unordered_map<Key, std::uint8_t>;

struct Load {
  std::size_t inserts, steps;
  bool random_keys;
};

// The same keys for every configuration.
std::vector<Key> keys_of(const Load& load) {
  std::vector<Key> keys(load.inserts);
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = load.random_keys ? random() : i;
  return keys;
}

struct Config {
  std::string name;
  vellum::StoreOptions store;
  bool deltas = true;
};

struct Result {
  double seconds = 0, insert_seconds = 0, snapshot_seconds = 0, bytes = 0, used_bytes = 0;
};

// The result of one configuration, and the seconds and bytes of full copies when asked for.
struct Copies {
  double seconds = 0, bytes = 0;
};

void write_copy(const std::string& file, const vellum::Region& region, std::size_t used_bytes) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const auto* base = static_cast<const std::byte*>(region.data());
  const vellum::Pin pin = region.pin(base, used_bytes);
  bool ok = fd >= 0;
  for (std::size_t at = 0; ok && at < used_bytes;) {
    const ssize_t n = write(fd, base + at, std::min<std::size_t>(used_bytes - at, 8u << 20));
    ok = n > 0;
    at += ok ? static_cast<std::size_t>(n) : 0;
  }
  ok = ok && fdatasync(fd) == 0;
  if (fd >= 0) close(fd);
  std::filesystem::remove(file);
  if (!ok) throw std::runtime_error("cannot write " + file);
}

template <typename Container, typename Insert>
Result run_container(const std::string& directory, const Config& config, const Load& load,
                     Insert insert, Copies* copies) {
  const std::vector<Key> keys = keys_of(load);
  const std::string path = directory + "/store";
  Result result;
  {
    auto store = vellum::Store::create(path, config.store);
    vellum::RegionOptions options;
    options.deltas = config.deltas;
    auto region = store.create_region("main", 64u << 20, options);
    vellum::Heap heap(region);
    auto& container = *heap.find_or_construct<Container>("container");
    for (std::size_t step = 0; step < load.steps; ++step) {
      const std::size_t first = load.inserts * step / load.steps;
      const std::size_t last = load.inserts * (step + 1) / load.steps;
      auto start = bench::Clock::now();
      for (std::size_t i = first; i < last; ++i) insert(container, keys[i]);
      result.insert_seconds += bench::seconds_since(start);
      start = bench::Clock::now();
      region.snapshot("step" + std::to_string(step));
      result.snapshot_seconds += bench::seconds_since(start);
      if (copies == nullptr) continue;
      const std::size_t used = heap.used_bytes();
      start = bench::Clock::now();
      write_copy(directory + "/copy", region, used);
      copies->seconds += bench::seconds_since(start);
      copies->bytes += static_cast<double>(used);
    }
  }
  result.seconds = result.insert_seconds + result.snapshot_seconds;
  result.bytes = static_cast<double>(vellum::Store::open(path).stat().stored_bytes);
  std::filesystem::remove_all(path);
  return result;
}

using Runner =
    std::function<Result(const std::string&, const Config&, const Load&, Copies* copies)>;

template <typename Container, typename Insert>
Runner runner(Insert insert) {
  return [insert](const std::string& directory, const Config& config, const Load& load,
                  Copies* copies) {
    return run_container<Container>(directory, config, load, insert, copies);
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

std::vector<Config> configs(const std::string& block_list) {
  std::vector<Config> all(2);
  all[0].name = "default";
  all[1].name = "uncompressed";
  all[1].store.compression = vellum::StoreOptions::Compression::none;
  std::istringstream blocks(block_list);
  for (std::string kib; std::getline(blocks, kib, ',');) {
    Config c;
    c.name = "no deltas " + kib + "K";
    c.store.block_bytes = static_cast<std::uint32_t>(std::stoul(kib)) << 10;
    c.deltas = false;
    all.push_back(c);
  }
  return all;
}

std::string cell(const Result& r) {
  return fmt::format("{} {:.2f}s", bench::human_bytes(r.bytes), r.seconds);
}

void add_targets(bench::Report& report, const std::string& row, bool random_tree,
                 const std::vector<Result>& results) {
  double bytes = results[2].bytes, seconds = results[2].seconds;
  for (std::size_t i = 3; i < results.size(); ++i) {
    bytes = std::min(bytes, results[i].bytes);
    seconds = std::min(seconds, results[i].seconds);
  }
  report.target(row + ": bytes / best without deltas", results[0].bytes / bytes,
                random_tree ? 0.25 : 1.0);
  report.target(row + ": seconds / best without deltas", results[0].seconds / seconds, 1.0);
}

void run(const bench::Options& options) {
  const Load load{options.number("inserts", 2'000'000), options.number("steps", 20), false};
  const std::string only = options.text("only", "");
  const auto all = configs(options.text("blocks", "64,1024,32768"));
  std::vector<std::string> heading{"container, keys"};
  for (const Config& c : all) heading.push_back(c.name);
  heading.insert(heading.end(), {"full copies", "copies / default", "time"});
  bench::Table table(heading);
  bench::Report report("stl");
  for (const auto& [name, runner] : containers()) {
    if (!only.empty() && name != only) continue;
    for (const bool random_keys : {false, true}) {
      Load this_load = load;
      this_load.random_keys = random_keys;
      const std::string row = name + (random_keys ? ", random" : ", sequential");
      std::vector<Result> results;
      std::vector<std::string> cells{row};
      Copies copies;
      for (const Config& config : all) {
        results.push_back(
            runner(options.scratch(), config, this_load, results.empty() ? &copies : nullptr));
        cells.push_back(cell(results.back()));
        report.figure(row + ", " + config.name + ", bytes", results.back().bytes);
        report.figure(row + ", " + config.name + ", seconds", results.back().seconds);
        report.figure(row + ", " + config.name + ", snapshot seconds",
                      results.back().snapshot_seconds);
      }
      const double copy_total = copies.seconds + results[0].insert_seconds;
      cells.push_back(fmt::format("{} {:.2f}s", bench::human_bytes(copies.bytes), copy_total));
      cells.push_back(fmt::format("{:.0f}", copies.bytes / results[0].bytes));
      cells.push_back(fmt::format("{:.1f}", copy_total / results[0].seconds));
      report.figure(row + ", full copies, bytes", copies.bytes);
      report.figure(row + ", full copies, seconds", copy_total);
      table.row(cells);
      fmt::print(stderr, "{}\n", fmt::join(cells, "  "));
      const bool tree = name == "map" || name == "set" || name == "unordered_map";
      if (results.size() > 2) add_targets(report, row, random_keys && tree, results);
    }
  }
  table.print();
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("stl", argc, argv, run); }
