// bench heap: the cost of vellum::Heap compared with malloc: edges of an R-MAT graph are inserted
// into hash maps of vectors, by one thread and by several, and one commit makes them durable.
//
// The peers, in the same run and alternating: the same containers of the standard library in plain
// memory, and the same containers on Metall's allocator, where that is installed. Each thread has
// its own map; all maps are in one heap.
//
//   bench_heap [--json FILE] [--dir DIR] [--rmat 18] [--edge-factor 16] [--threads 2] [--rounds 3]
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <unordered_map>
#include <vellum/heap.hpp>
#include <vellum/store.hpp>

#include "ingest.hpp"

namespace {

using bench::Link;
using bench::Shares;
using PlainGraph = std::unordered_map<NodeId, std::vector<Link>>;
using HeapGraph = vellum::unordered_map<NodeId, vellum::vector<Link>>;

double ingest_into_plain_memory(const Shares& shares) {
  std::vector<std::unique_ptr<PlainGraph>> owned;
  std::vector<PlainGraph*> graphs;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    graphs.push_back(owned.emplace_back(std::make_unique<PlainGraph>()).get());
  }
  return bench::ingest(graphs, shares);
}

struct Result {
  double ingest_seconds = 0, commit_seconds = 0, heap_bytes = 0, stored_bytes = 0;
  double seconds() const { return ingest_seconds + commit_seconds; }
};

Result ingest_into_heap(const std::string& path, const Shares& shares) {
  Result result;
  {
    auto store = vellum::Store::create(path);
    auto region = store.create_region("graph", 64u << 20);
    vellum::Heap heap(region);
    std::vector<HeapGraph*> graphs;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      graphs.push_back(&heap.root<HeapGraph>("graph" + std::to_string(i)));
    }
    result.ingest_seconds = bench::ingest(graphs, shares);
    const auto start = bench::Clock::now();
    region.commit();
    result.commit_seconds = bench::seconds_since(start);
    result.heap_bytes = static_cast<double>(heap.used_bytes());
  }
  result.stored_bytes = static_cast<double>(vellum::Store::open(path).stat().stored_bytes);
  std::filesystem::remove_all(path);
  return result;
}

// All rounds with one number of threads.
struct Series {
  std::vector<double> plain, metall;
  std::vector<Result> heap;

  static double median(std::vector<double> values) {
    return bench::percentile(std::move(values), 50);
  }
  template <typename Of>
  double median_of_heap(Of of) const {
    return bench::median_of(heap, of);
  }
};

void run_round(Series& series, const std::string& directory, const Shares& shares) {
  series.plain.push_back(ingest_into_plain_memory(shares));
  series.heap.push_back(ingest_into_heap(directory + "/store", shares));
#ifdef BENCH_METALL
  series.metall.push_back(bench::ingest_into_metall(directory + "/metall", shares));
#endif
}

std::string ratio(double value, double of) { return bench::fixed(value / of, 2); }

void report_series(bench::Report& report, bench::Table& table, std::size_t threads,
                   const Series& series, const Series& one_thread) {
  const std::string name = fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
  const double plain = Series::median(series.plain);
  const double plain_once = Series::median(one_thread.plain);
  const auto row = [&](const std::string& what, double seconds, double once) {
    table.row({what + ", " + name, bench::fixed(seconds, 3), ratio(seconds, plain),
               ratio(once, seconds)});
    report.figure(what + ", " + name + ", seconds", seconds);
  };
  row("plain memory", plain, plain_once);
  if (!series.metall.empty()) {
    row("Metall's allocator", Series::median(series.metall), Series::median(one_thread.metall));
  }
  const double ingest = series.median_of_heap(&Result::ingest_seconds);
  row("heap, ingest", ingest, one_thread.median_of_heap(&Result::ingest_seconds));
  row("heap, commit", series.median_of_heap(&Result::commit_seconds),
      one_thread.median_of_heap(&Result::commit_seconds));
  const double seconds = series.median_of_heap(&Result::seconds);
  row("heap, both", seconds, one_thread.median_of_heap(&Result::seconds));
  report.figure("heap, " + name + ", bytes in use", series.median_of_heap(&Result::heap_bytes));
  report.figure("heap, " + name + ", bytes stored", series.median_of_heap(&Result::stored_bytes));
  report.target("ingest / plain memory, " + name, ingest / plain, 1.4);
  report.target("ingest and commit / plain memory, " + name, seconds / plain, 1.4);
}

void run(const bench::Options& options) {
  const auto edges = make_up_edges(static_cast<int>(options.number("rmat", 18)),
                                   options.number("edge-factor", 16), 1);
  const std::size_t threads = std::max<std::size_t>(options.number("threads", 2), 1);
  const Shares one = bench::shares_of(edges, 1), several = bench::shares_of(edges, threads);
  Series of_one, of_several;
  for (std::uint64_t round = 0; round < options.number("rounds", 3); ++round) {
    run_round(of_one, options.scratch(), one);
    run_round(of_several, options.scratch(), several);
  }
  bench::Table table({"", "seconds", "/ plain memory", "one thread / this"});
  bench::Report report("heap");
  report_series(report, table, 1, of_one, of_one);
  report_series(report, table, threads, of_several, of_one);
  table.print();
  fmt::print("in use {}, stored {}\n\n",
             bench::human_bytes(of_one.median_of_heap(&Result::heap_bytes)),
             bench::human_bytes(of_one.median_of_heap(&Result::stored_bytes)));
  const auto ingest = &Result::ingest_seconds;
  report.target(fmt::format("ingest, one thread / {}", threads),
                of_one.median_of_heap(ingest) / of_several.median_of_heap(ingest),
                0.85 * static_cast<double>(threads), false);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("heap", argc, argv, run); }
