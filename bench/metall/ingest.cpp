// bench metall: the workloads of Metall's and Privateer's papers, only through metall::manager:
// containers that take keys, and the adjacency list of an R-MAT graph, in equal rounds with a
// snapshot after each.
//
// The same source is compiled once for each manager; they differ only in the metall::manager of
// <metall/metall.hpp>. The store is DIR/store/live and its snapshots are DIR/store/round<i>, which
// suits plain Metall and managers that keep versions of one base directory. table.py runs several
// of these programs and compares them.
//
//   bench_metall [--json FILE] [--dir DIR] [--only vector|map|unordered_map|graph]
//                [--keys random|sequential] [--inserts 4000000] [--rmat 18] [--edge-factor 16]
//                [--rounds 10] [--snapshots 1] [--sync 0] [--async 0] [--capacity-gib 32] [--check
//                1]
//
// Seconds of inserts, of snapshots (with --sync 1 until the file system has all of it on disk; with
// --async 1 the program's wait, the rest is in closing), of closing and of opening the last
// snapshot. Bytes after each round and at the end: the files' sizes, their disk blocks (of hard
// links once, of reflinks each time), and the decrease of the file system's free space, which is
// the figure for shared or compressed blocks - if nothing else writes there, and, before the end,
// only with --sync 1. With --check, the first and the last snapshot must have the inserted content.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <metall/container/map.hpp>
#include <metall/container/scoped_allocator.hpp>
#include <metall/container/unordered_map.hpp>
#include <metall/container/vector.hpp>
#include <metall/metall.hpp>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>

#include "edge_list.hpp"
#include "lib/report.hpp"

namespace {

namespace fs = std::filesystem;

using Key = std::uint64_t;
template <typename T>
using Allocator = metall::manager::allocator_type<T>;
using Vector = metall::container::vector<Key>;
using Map = metall::container::map<Key, Key>;
using HashMap = metall::container::unordered_map<Key, Key>;
using Targets = metall::container::vector<NodeId>;
using Graph = metall::container::unordered_map<
    NodeId, Targets, std::hash<NodeId>, std::equal_to<>,
    metall::container::scoped_allocator_adaptor<Allocator<std::pair<const NodeId, Targets>>>>;

struct Setting {
  std::string directory;
  std::size_t rounds, capacity_bytes;
  bool snapshots, sync, async, check;
  std::string live() const { return directory + "/live"; }
  std::string snapshot(std::size_t round) const {
    return directory + fmt::format("/round{}", round);
  }
};

void sync_file_system(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bench::check(fd >= 0 && syncfs(fd) == 0, path.c_str());
  close(fd);
}

struct Bytes {
  double apparent = 0, blocks = 0, file_system = 0;
};

double used_bytes(const std::string& path) {
  struct statvfs info{};
  bench::check(statvfs(path.c_str(), &info) == 0, path.c_str());
  return static_cast<double>(info.f_blocks - info.f_bfree) * static_cast<double>(info.f_frsize);
}

Bytes stored_bytes(const std::string& path, double used_before) {
  Bytes bytes;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    struct stat info{};
    if (lstat(entry.path().c_str(), &info) != 0 && errno == ENOENT) continue;  // removed meanwhile
    if (!S_ISREG(info.st_mode) || !seen.emplace(info.st_dev, info.st_ino).second) continue;
    bytes.apparent += static_cast<double>(info.st_size);
    bytes.blocks += static_cast<double>(info.st_blocks) * 512;
  }
  bytes.file_system = used_bytes(path) - used_before;
  return bytes;
}

struct Result {
  std::vector<double> insert_seconds, snapshot_seconds;
  std::vector<Bytes> round_bytes;
  double create_seconds = 0, close_seconds = 0, open_seconds = 0;
  Bytes bytes;
  static double sum(const std::vector<double>& of) {
    return std::accumulate(of.begin(), of.end(), 0.0);
  }
  double seconds() const {
    return create_seconds + sum(insert_seconds) + sum(snapshot_seconds) + close_seconds;
  }
};

// The content of a container, equal for equal inserts.
template <typename Container>
std::size_t count(const Container& container) {
  return container.size();
}
std::size_t count(const Graph& graph) {
  std::size_t edges = 0;
  for (const auto& [source, targets] : graph) edges += targets.size();
  return edges;
}

template <typename Container>
std::size_t count_in_snapshot(const std::string& path) {
  metall::manager manager(metall::open_read_only, path);
  const auto found = manager.find<Container>("container");
  if (found.first == nullptr) throw std::runtime_error(path + " lacks the container");
  return count(*found.first);
}

template <typename Container>
double check_snapshots(const Setting& setting, const std::vector<std::size_t>& counts) {
  double seconds = 0;
  for (const std::size_t round : {std::size_t{0}, counts.size() - 1}) {
    const auto start = bench::Clock::now();
    const std::size_t now = count_in_snapshot<Container>(setting.snapshot(round));
    seconds = bench::seconds_since(start);
    if (now != counts[round]) {
      throw std::runtime_error(
          fmt::format("{} has {} entries, not {}", setting.snapshot(round), now, counts[round]));
    }
  }
  return seconds;
}

// Snapshots of one manager. With `--async`, in the background where the manager can do so: then
// they are all complete when wait() returns.
class Snapshots {
 public:
  explicit Snapshots(const Setting& setting) : setting_(setting) {}
  void take(metall::manager& manager, std::size_t round) {
    const std::string path = setting_.snapshot(round);
    if (setting_.async) {
#ifdef VELLUM_METALL_HPP
      pending_.push_back(vellum::metall_snapshot_async(manager, path));
      return;
#else
      throw std::runtime_error("this manager has no snapshots in the background");
#endif
    }
    if (!manager.snapshot(path)) throw std::runtime_error("no snapshot");
    if (setting_.sync) sync_file_system(setting_.directory);
  }
  void wait() {
#ifdef VELLUM_METALL_HPP
    for (auto& future : pending_) future.get();
    pending_.clear();
#endif
  }

 private:
  const Setting& setting_;
#ifdef VELLUM_METALL_HPP
  std::vector<std::future<vellum::CommitReport>> pending_;
#endif
};

// `insert(container, round)` does one round's inserts.
template <typename Container, typename Insert>
Result run_workload(const Setting& setting, Insert insert) {
  fs::create_directories(setting.directory);
  // Twice: deleted blocks may be freed only by the second one.
  for (int i = 0; i < 2; ++i) sync_file_system(setting.directory);
  const double used_before = used_bytes(setting.directory);
  Result result;
  std::vector<std::size_t> counts;
  const auto timed = [](double& seconds, auto&& what) {
    const auto start = bench::Clock::now();
    what();
    seconds = bench::seconds_since(start);
  };
  std::optional<metall::manager> manager;
  Container* container = nullptr;
  timed(result.create_seconds, [&] {
    manager.emplace(metall::create_only, setting.live(), setting.capacity_bytes);
    container = manager->construct<Container>("container")(manager->get_allocator<>());
  });
  Snapshots snapshots(setting);
  for (std::size_t round = 0; round < setting.rounds; ++round) {
    timed(result.insert_seconds.emplace_back(), [&] { insert(*container, round); });
    timed(result.snapshot_seconds.emplace_back(), [&] {
      if (setting.snapshots) snapshots.take(*manager, round);
    });
    result.round_bytes.push_back(stored_bytes(setting.directory, used_before));
    if (setting.check) counts.push_back(count(*container));
  }
  timed(result.close_seconds, [&] {
    snapshots.wait();
    manager.reset();
    if (setting.sync) sync_file_system(setting.directory);
  });
  for (int i = 0; i < 2; ++i) sync_file_system(setting.directory);
  result.bytes = stored_bytes(setting.directory, used_before);
  if (setting.check && setting.snapshots) {
    result.open_seconds = check_snapshots<Container>(setting, counts);
  }
  fs::remove_all(setting.directory);
  return result;
}

std::pair<std::size_t, std::size_t> part(std::size_t all, const Setting& setting,
                                         std::size_t round) {
  return {all * round / setting.rounds, all * (round + 1) / setting.rounds};
}

std::vector<Key> make_up_keys(std::size_t inserts, bool random_keys) {
  std::mt19937_64 random(1);
  std::vector<Key> keys(inserts);
  for (std::size_t i = 0; i < inserts; ++i) keys[i] = random_keys ? random() : i;
  return keys;
}

template <typename Container, typename Add>
Result run_keys(const Setting& setting, const bench::Options& options, Add add) {
  const auto keys = make_up_keys(options.number("inserts", 4'000'000),
                                 options.text("keys", "random") == "random");
  return run_workload<Container>(setting, [&](Container& container, std::size_t round) {
    const auto [begin, end] = part(keys.size(), setting, round);
    for (std::size_t i = begin; i < end; ++i) add(container, keys[i]);
  });
}

Result run_graph(const Setting& setting, const bench::Options& options) {
  const auto edges = make_up_edges(static_cast<int>(options.number("rmat", 18)),
                                   options.number("edge-factor", 16), 1);
  return run_workload<Graph>(setting, [&](Graph& graph, std::size_t round) {
    const auto [begin, end] = part(edges.size(), setting, round);
    for (std::size_t i = begin; i < end; ++i) graph[edges[i].source].push_back(edges[i].target);
  });
}

using Runner = std::function<Result(const Setting&, const bench::Options&)>;

template <typename Container, typename Add>
Runner on_keys(Add add) {
  return [add](const Setting& setting, const bench::Options& options) {
    return run_keys<Container>(setting, options, add);
  };
}

std::vector<std::pair<std::string, Runner>> workloads() {
  const auto push = [](auto& c, Key key) { c.push_back(key); };
  const auto assign = [](auto& c, Key key) { c[key] = key; };
  return {{"vector", on_keys<Vector>(push)},
          {"map", on_keys<Map>(assign)},
          {"unordered_map", on_keys<HashMap>(assign)},
          {"graph", run_graph}};
}

void add_bytes(bench::Report& report, const std::string& name, const Bytes& bytes) {
  report.figure(name + ", apparent bytes", bytes.apparent);
  report.figure(name + ", block bytes", bytes.blocks);
  report.figure(name + ", file system bytes", bytes.file_system);
}

void add_figures(bench::Report& report, const std::string& name, const Result& result) {
  report.figure(name + ", seconds", result.seconds());
  report.figure(name + ", create seconds", result.create_seconds);
  report.figure(name + ", insert seconds", Result::sum(result.insert_seconds));
  report.figure(name + ", snapshot seconds", Result::sum(result.snapshot_seconds));
  report.figure(name + ", close seconds", result.close_seconds);
  report.figure(name + ", open seconds", result.open_seconds);
  add_bytes(report, name, result.bytes);
  for (std::size_t i = 0; i < result.insert_seconds.size(); ++i) {
    const std::string round = fmt::format("{}, round {}", name, i);
    report.figure(round + ", insert seconds", result.insert_seconds[i]);
    report.figure(round + ", snapshot seconds", result.snapshot_seconds[i]);
    add_bytes(report, round, result.round_bytes[i]);
  }
}

void run(const bench::Options& options) {
  const Setting setting{options.scratch() + "/store",
                        std::max<std::size_t>(options.number("rounds", 10), 1),
                        options.number("capacity-gib", 32) << 30,
                        options.number("snapshots", 1) != 0,
                        options.number("sync", 0) != 0,
                        options.number("async", 0) != 0,
                        options.number("check", 1) != 0};
  const std::string only = options.text("only", "");
  bench::Table table({"workload", "seconds", "create", "inserts", "snapshots", "last one", "close",
                      "open", "apparent", "blocks", "file system"});
  bench::Report report("metall");
  for (const auto& [name, runner] : workloads()) {
    if (!only.empty() && name != only) continue;
    const Result r = runner(setting, options);
    std::vector<std::string> cells{name};
    for (const double s : {r.seconds(), r.create_seconds, Result::sum(r.insert_seconds),
                           Result::sum(r.snapshot_seconds), r.snapshot_seconds.back(),
                           r.close_seconds, r.open_seconds}) {
      cells.push_back(bench::fixed(s, 3));
    }
    for (const double b : {r.bytes.apparent, r.bytes.blocks, r.bytes.file_system}) {
      cells.push_back(bench::human_bytes(b));
    }
    table.row(std::move(cells));
    add_figures(report, name, r);
  }
  table.print();
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("metall", argc, argv, run); }
