// bench graph: a temporal graph that grows edge by edge, with a snapshot each year and each month:
// the use case of the papers on versions of memory.
//
// Two containers on vellum::Heap, a hash map and an ordered map of vectors, insert the edges in
// order of time. The peers, in the same run and alternating: the same region committed once at the
// end, the same containers of the standard library in plain memory, full copies of the region's
// image (written and flushed) and zstd --patch-from of these images.
//
//   bench_graph [--json FILE] [--dir DIR] [--edges FILE] [--rmat 18] [--edge-factor 16]
//               [--periods 17] [--rounds 1] [--months 1] [--copies 1] [--patch plain|single|none]
//               [--only hash|ordered] [--engine automatic|uffd|sigsegv|mapped] [--level 1]
//               [--compression zstd|lz4|none]
//
// With --edges: that graph, by calendar years and months (examples/edge_list.hpp describes the
// format). With --rmat, or without --edges: R-MAT, in --periods equal parts and in twelve times as
// many.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <unordered_map>
#include <vellum/heap.hpp>
#include <vellum/store.hpp>

#include "edge_list.hpp"
#include "lib/copies.hpp"
#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

struct Link {
  NodeId target;
  std::int64_t time;
};

using HashGraph = vellum::unordered_map<NodeId, vellum::vector<Link>>;
using OrderedGraph = vellum::map<NodeId, vellum::vector<Link>>;
using PlainHashGraph = std::unordered_map<NodeId, std::vector<Link>>;
using PlainOrderedGraph = std::map<NodeId, std::vector<Link>>;

// The ends of the periods: indices of edges; the last one is the number of edges.
using Ends = std::vector<std::size_t>;

struct Input {
  std::string name;
  std::vector<Edge> edges;
  Ends years, months;
};

Ends calendar_ends(const std::vector<Edge>& edges, bool monthly) {
  Ends ends;
  std::string period;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (i > 0 && edges[i].time == edges[i - 1].time) continue;
    const std::string now = period_of(edges[i].time, monthly);
    if (i > 0 && now != period) ends.push_back(i);
    period = now;
  }
  ends.push_back(edges.size());
  return ends;
}

Ends equal_ends(std::size_t edges, std::size_t periods) {
  Ends ends;
  for (std::size_t i = 1; i <= periods; ++i) ends.push_back(edges * i / periods);
  return ends;
}

template <typename Graph>
void add_edges(Graph& graph, const std::vector<Edge>& edges, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    graph[edges[i].source].push_back({edges[i].target, edges[i].time});
  }
}

struct Result {
  double ingest_seconds = 0, snapshot_seconds = 0, bytes = 0;
  // Of the snapshots, or of the one commit: CommitReport's stages.
  double scan = 0, encode = 0, write = 0, flush = 0, publish = 0;
  double pages_dirty = 0, pages_changed = 0;
  double seconds() const { return ingest_seconds + snapshot_seconds; }
  void add(const vellum::CommitReport& report) {
    const auto in_seconds = [](std::chrono::duration<double> time) { return time.count(); };
    scan += in_seconds(report.scan_time);
    encode += in_seconds(report.encode_time);
    write += in_seconds(report.write_time);
    flush += in_seconds(report.flush_time);
    publish += in_seconds(report.publish_time);
    pages_dirty += static_cast<double>(report.pages_dirty);
    pages_changed += static_cast<double>(report.pages_changed);
  }
};

struct Setting {
  std::string directory;
  vellum::Engine engine;
  vellum::StoreOptions store;
};

vellum::Encoding::Compression compression_named(const std::string& name) {
  using Compression = vellum::Encoding::Compression;
  if (name == "zstd") return Compression::zstd;
  if (name == "lz4") return Compression::lz4;
  if (name == "none") return Compression::none;
  throw std::runtime_error("--compression: zstd, lz4 or none");
}

// A commit at the end of the last period, or a snapshot at the end of each.
enum class Keeps { one_commit, snapshots, async_snapshots };

// `peers`: full copies of each period's state are written, too.
template <typename Graph>
Result run_vellum(const Setting& setting, const std::vector<Edge>& edges, const Ends& ends,
                  Keeps keeps, bench::Peers* peers) {
  const std::string path = setting.directory + "/store";
  Result result;
  std::vector<std::future<vellum::CommitReport>> reports;
  {
    auto store = vellum::Store::create(path, setting.store);
    vellum::RegionOptions options;
    options.engine = setting.engine;
    auto region = store.create_region("graph", 64u << 20, options);
    vellum::Heap heap(region);
    Graph& graph = *heap.find_or_construct<Graph>("graph");
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      auto start = bench::Clock::now();
      add_edges(graph, edges, begin, end);
      result.ingest_seconds += bench::seconds_since(start);
      begin = end;
      start = bench::Clock::now();
      const std::string name = "until-" + std::to_string(end);
      if (keeps == Keeps::snapshots) {
        result.add(region.snapshot(name));
      } else if (keeps == Keeps::async_snapshots) {
        reports.push_back(region.snapshot_async(name));
      } else if (end == edges.size()) {
        result.add(region.commit());
      }
      result.snapshot_seconds += bench::seconds_since(start);
      if (peers != nullptr) peers->add(region);
    }
    const auto start = bench::Clock::now();
    for (auto& report : reports) result.add(report.get());
    result.snapshot_seconds += bench::seconds_since(start);
  }
  result.bytes = static_cast<double>(vellum::Store::open(path).stat().stored_bytes);
  std::filesystem::remove_all(path);
  return result;
}

template <typename Graph>
Result run_plain(const std::vector<Edge>& edges) {
  Result result;
  Graph graph;
  const auto start = bench::Clock::now();
  add_edges(graph, edges, 0, edges.size());
  result.ingest_seconds = bench::seconds_since(start);
  return result;
}

struct Container {
  std::string name;
  std::function<Result(const Setting&, const Input&, const Ends&, Keeps, bench::Peers*)> vellum;
  std::function<Result(const Input&)> plain;
};

template <typename Graph, typename Plain>
Container container(const std::string& name) {
  return {name,
          [](const Setting& setting, const Input& input, const Ends& ends, Keeps keeps,
             bench::Peers* peers) {
            return run_vellum<Graph>(setting, input.edges, ends, keeps, peers);
          },
          [](const Input& input) { return run_plain<Plain>(input.edges); }};
}

// One configuration of a container, over all rounds.
struct Series {
  std::vector<Result> rounds;
  double median(double Result::* field) const { return bench::median_of(rounds, field); }
  double seconds() const { return bench::median_of(rounds, &Result::seconds); }
};

struct Measured {
  Series plain, once, years, async_years, months, async_months;
  std::optional<bench::Peers> year_peers, month_peers;
};

Measured measure(const Container& container, const Input& input, const bench::Options& options) {
  Setting setting{options.scratch(), bench::engine_named(options.text("engine", "automatic")), {}};
  setting.store.encoding.compression_level = static_cast<int>(options.number("level", 1));
  setting.store.encoding.compression = compression_named(options.text("compression", "zstd"));
  const Ends whole{input.edges.size()};
  Measured out;
  // Alternating, to expose all to the same disturbances.
  for (std::uint64_t round = 0; round < options.number("rounds", 1); ++round) {
    out.plain.rounds.push_back(container.plain(input));
    const auto run = [&](const Ends& ends, Keeps keeps, Series& series) {
      series.rounds.push_back(container.vellum(setting, input, ends, keeps, nullptr));
    };
    run(whole, Keeps::one_commit, out.once);
    run(input.years, Keeps::snapshots, out.years);
    run(input.years, Keeps::async_snapshots, out.async_years);
    if (input.months.empty()) continue;
    run(input.months, Keeps::snapshots, out.months);
    run(input.months, Keeps::async_snapshots, out.async_months);
  }
  if (options.number("copies", 1) == 0) return out;
  const auto patches = bench::patches_named(options.text("patch", "plain"));
  // Separate runs: a copy leaves the caches and the disk in another state.
  for (const auto& [ends, peers] :
       {std::pair{&input.years, &out.year_peers}, {&input.months, &out.month_peers}}) {
    if (ends->empty()) continue;
    peers->emplace(setting.directory + "/copy", patches);
    container.vellum(setting, input, *ends, Keeps::one_commit, &**peers);
  }
  return out;
}

std::string rate(double edges, double seconds) {
  return fmt::format("{:.2f} ({:.2f})", edges / seconds / 1e6, seconds);
}

std::string part(double value, double of) {
  return of > 0 ? fmt::format("{:.3g}", value / of) : "-";
}

// The tables of one run; a row for each container and period.
struct Tables {
  bench::Table time{{"M edges/s (s)", "plain memory", "Vellum, one commit", "with snapshots",
                     "/ one commit", "full copies", "/ full copies"}};
  bench::Table bytes{{"bytes", "one commit", "with snapshots", "full copies", "/ full copies",
                      "patch-from", "/ patch-from"}};
  bench::Table stages{{"seconds", "ingest", "snapshots", "scan", "encode", "write", "flush",
                       "publish", "pages dirty", "changed"}};

  void stage_row(const std::string& name, const Series& series) {
    std::vector<std::string> cells{name};
    for (const auto field : {&Result::ingest_seconds, &Result::snapshot_seconds, &Result::scan,
                             &Result::encode, &Result::write, &Result::flush, &Result::publish}) {
      cells.push_back(bench::fixed(series.median(field), 3));
    }
    for (const auto field : {&Result::pages_dirty, &Result::pages_changed}) {
      cells.push_back(bench::fixed(series.median(field), 0));
    }
    stages.row(std::move(cells));
  }
};

void report_series(bench::Report& report, const std::string& name, const Series& series) {
  report.figure(name + ", seconds", series.seconds());
  for (const auto& [field, of] : {std::pair{"ingest", &Result::ingest_seconds},
                                  {"snapshot", &Result::snapshot_seconds},
                                  {"scan", &Result::scan},
                                  {"encode", &Result::encode},
                                  {"write", &Result::write},
                                  {"flush", &Result::flush},
                                  {"publish", &Result::publish}}) {
    report.figure(fmt::format("{}, {} seconds", name, field), series.median(of));
  }
  if (series.median(&Result::bytes) > 0) {
    report.figure(name + ", bytes", series.median(&Result::bytes));
  }
}

void add_row(Tables& tables, bench::Report& report, const std::string& row, double edges,
             const Measured& measured, const Series& series,
             const std::optional<bench::Peers>& peers) {
  const double once = measured.once.seconds(), seconds = series.seconds();
  const double bytes = series.median(&Result::bytes);
  const double copies =
      peers ? peers->copy_seconds() + measured.once.median(&Result::ingest_seconds) : 0;
  const double copy_bytes = peers ? peers->copy_bytes() : 0;
  const double patch_bytes = peers ? peers->patch_bytes() : 0;
  const auto size = [](double value) {
    return value > 0 ? bench::human_bytes(value) : std::string("-");
  };
  tables.time.row({row, rate(edges, measured.plain.seconds()), rate(edges, once),
                   rate(edges, seconds), part(seconds, once),
                   copies > 0 ? rate(edges, copies) : "-", part(seconds, copies)});
  tables.bytes.row({row, size(measured.once.median(&Result::bytes)), size(bytes), size(copy_bytes),
                    part(bytes, copy_bytes), size(patch_bytes), part(bytes, patch_bytes)});
  tables.stage_row(row, series);
  report_series(report, row + ", snapshots", series);
  report_series(report, row + ", plain memory", measured.plain);
  report_series(report, row + ", one commit", measured.once);
  if (copies > 0) {
    report.figure(row + ", full copies, seconds", copies);
    report.figure(row + ", full copies, bytes", copy_bytes);
  }
  if (patch_bytes > 0) {
    report.figure(row + ", patch-from, bytes", patch_bytes);
    report.target(row + ": bytes / patch-from", bytes / patch_bytes, 1.25);
  }
}

void run_container(Tables& tables, bench::Report& report, const Container& container,
                   const Input& input, const bench::Options& options) {
  const Measured measured = measure(container, input, options);
  const auto edges = static_cast<double>(input.edges.size());
  const std::string name = input.name + ", " + container.name;
  tables.stage_row(name + ", one commit", measured.once);
  const std::string years = fmt::format("{}, {} periods", name, input.years.size());
  const std::string months = fmt::format("{}, {} periods", name, input.months.size());
  const auto rows = [&](const std::string& row, const Series& series, const Series& async,
                        const std::optional<bench::Peers>& peers, double most) {
    add_row(tables, report, row, edges, measured, series, peers);
    add_row(tables, report, row + ", async", edges, measured, async, std::nullopt);
    const double once = measured.once.seconds();
    report.target(row + ": seconds / one commit", series.seconds() / once, most);
    report.target(row + ": publish / snapshots",
                  series.median(&Result::publish) / series.median(&Result::snapshot_seconds), 0.1);
  };
  rows(years, measured.years, measured.async_years, measured.year_peers, 1.5);
  report.target(years + ", async: seconds / one commit",
                measured.async_years.seconds() / measured.once.seconds(), 1.25);
  if (!input.months.empty()) {
    rows(months, measured.months, measured.async_months, measured.month_peers, 3);
  }
  fmt::print(stderr, "{}: plain {:.2f} s, one commit {:.2f} s, years {:.2f} s\n", name,
             measured.plain.seconds(), measured.once.seconds(), measured.years.seconds());
}

// One graph at a time is in memory.
std::vector<std::function<Input()>> inputs(const bench::Options& options) {
  std::vector<std::function<Input()>> out;
  const std::string file = options.text("edges", "");
  if (!file.empty()) {
    out.emplace_back([file] {
      Input input{std::filesystem::path(file).stem().stem(), read_edges_by_time(file), {}, {}};
      input.years = calendar_ends(input.edges, false);
      input.months = calendar_ends(input.edges, true);
      return input;
    });
  }
  if (file.empty() || !options.text("rmat", "").empty()) {
    const auto scale = static_cast<int>(options.number("rmat", 18));
    if (scale < 1 || scale > 40) throw std::runtime_error("--rmat: 1 to 40");
    out.emplace_back([scale, factor = options.number("edge-factor", 16),
                      periods = options.number("periods", 17)] {
      Input input{fmt::format("R-MAT {}", scale), make_up_edges(scale, factor, 1), {}, {}};
      input.years = equal_ends(input.edges.size(), periods);
      input.months = equal_ends(input.edges.size(), 12 * periods);
      return input;
    });
  }
  return out;
}

void run(const bench::Options& options) {
  const std::string only = options.text("only", "");
  Tables tables;
  bench::Report report("graph");
  for (const auto& make_input : inputs(options)) {
    Input input = make_input();
    if (options.number("months", 1) == 0) input.months.clear();
    if (input.edges.empty()) throw std::runtime_error("no edges");
    fmt::print("{}: {} edges\n", input.name, input.edges.size());
    for (const auto& c : {container<HashGraph, PlainHashGraph>("hash map"),
                          container<OrderedGraph, PlainOrderedGraph>("ordered map")}) {
      if (c.name.rfind(only, 0) == 0) run_container(tables, report, c, input, options);
    }
  }
  fmt::print("\n");
  for (const auto* table : {&tables.time, &tables.bytes, &tables.stages}) {
    table->print();
    fmt::print("\n");
  }
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("graph", argc, argv, run); }
