// bench scale: the cost of a store with large numbers of objects.
//
// Snapshots: one region, a word of some pages changed before each snapshot; at 100, 1,000, 10,000
// and 20,000 snapshots, up to --snapshots, stat, verify, versions, gc and a snapshot. Branches:
// many that have a name and a page, and that no process has open. Packs: more than the process may
// have descriptors. Sparse files: import and export of a file of 1 TiB that is nearly all holes,
// compared with a file of its data. Scattered reads: pages of a region of 1 TiB.
//
// Seconds are processor time, user and system: other work on the machine changes them little. Each
// measurement runs in a separate process, whose peak is its memory.
//
//   bench_scale [--json FILE] [--dir DIR] [--snapshots 1000] [--branches 200] [--packs 300]
//               [--descriptors 128] [--sparse-mib 64] [--scattered 20000] [--part all]
// The figures in docs/measurements.md are of the full form:
//   bench_scale --snapshots 20000 --branches 1000 --packs 1200 --descriptors 256
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/processor_seconds.hpp"
#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

constexpr std::uint64_t kMiB = 1u << 20, kTiB = 1ULL << 40;
constexpr double kBytesInMiB = 1 << 20;

// Of /proc/self/status, in MiB: VmHWM or VmRSS.
double memory_mib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != field + ":") continue;
    double kib = 0;
    status >> kib;
    return kib / 1024;
  }
  return 0;
}

struct Cost {
  double seconds = 0, peak_mib = 0;
  bool failed = false;
};

// Measures `body` with the store open, in a separate process. A failure is reported and counted.
template <typename Body>
Cost cost_of(const std::string& path, const Body& body) {
  return bench::in_child([&] {
    Cost cost;
    const double before = bench::processor_seconds();
    try {
      auto store = vellum::Store::open(path);
      body(store);
    } catch (const std::exception& e) {
      fmt::print(stderr, "scale: {}\n", e.what());
      cost.failed = true;
    }
    cost.seconds = bench::processor_seconds() - before;
    cost.peak_mib = memory_mib("VmHWM");
    return cost;
  });
}

Cost cost_of_stat(const std::string& path) {
  return cost_of(path, [](vellum::Store& store) { store.stat(); });
}
Cost cost_of_versions(const std::string& path) {
  return cost_of(path, [](vellum::Store& store) { store.versions(); });
}
Cost cost_of_gc(const std::string& path) {
  return cost_of(path, [](vellum::Store& store) { store.collect_garbage(); });
}
Cost cost_of_verify(const std::string& path) {
  return cost_of(path, [](vellum::Store& store) {
    if (!store.verify({.read_data = true}).damages.empty())
      throw std::runtime_error("verify finds damage");
  });
}

// Snapshots.

constexpr std::size_t kRegionBytes = 16u << 20, kPagesAStep = 8;

struct SnapshotCost {
  double seconds = 0, wall_s = 0;  // of one: the median of the new ones
};

// Creates the snapshots of these numbers; number 0 from a region of integers.
SnapshotCost add_snapshots(const std::string& path, std::size_t from, std::size_t to) {
  return bench::in_child([&] {
    auto store = vellum::Store::open_or_create(path);
    auto region = store.open_or_create_region("main", kRegionBytes);
    auto* const base = static_cast<std::byte*>(region.data());
    if (from == 0) bench::fill_with_integers({base, kRegionBytes}, 1);
    std::mt19937_64 random(from);
    std::vector<SnapshotCost> all;
    for (std::size_t i = from; i < to; ++i) {
      bench::store_into(
          base, bench::pick_pages(random, kRegionBytes / bench::kPageBytes, kPagesAStep), random);
      const auto start = bench::Clock::now();
      const double before = bench::processor_seconds();
      region.snapshot(fmt::format("{:06}", i));
      all.push_back({bench::processor_seconds() - before, bench::seconds_since(start)});
    }
    return SnapshotCost{bench::median_of(all, &SnapshotCost::seconds),
                        bench::median_of(all, &SnapshotCost::wall_s)};
  });
}

// All of this many snapshots exist; a separate process creates the newest hundred.
void report_snapshots(bench::Table& table, bench::Report& report, const std::string& path,
                      std::size_t count, const SnapshotCost& made, const SnapshotCost& first) {
  const Cost stat = cost_of_stat(path), verify = cost_of_verify(path);
  const Cost versions = cost_of_versions(path), gc = cost_of_gc(path), again = cost_of_gc(path);
  table.row({std::to_string(count), bench::fixed(stat.seconds, 2), bench::fixed(stat.peak_mib, 0),
             bench::fixed(verify.seconds, 2), bench::fixed(versions.seconds, 3),
             bench::fixed(gc.seconds, 2), bench::fixed(again.seconds, 2),
             bench::fixed(made.seconds * 1e3, 2), bench::fixed(made.wall_s * 1e3, 2)});
  const std::string name = fmt::format("{} snapshots: ", count);
  report.figure(name + "gc, s", gc.seconds);
  report.figure(name + "gc again, s", again.seconds);
  report.figure(name + "a snapshot, s", made.seconds);
  report.figure(name + "a snapshot with its flushes, s", made.wall_s);
  report.target(name + "stat, s", stat.seconds, 2);
  report.target(name + "stat, MiB", stat.peak_mib, 150);
  report.target(name + "verify, s", verify.seconds, 10);
  report.target(name + "versions, s", versions.seconds, 0.3);
  report.target(name + "a snapshot / one of the first hundred", made.seconds / first.seconds, 1.5);
}

void run_snapshots(const bench::Options& options, bench::Report& report) {
  const std::size_t most = options.number("snapshots", 1000);
  const std::string path = options.scratch() + "/snapshots";
  bench::Table table({"snapshots", "stat s", "MiB", "verify s", "versions s", "gc s", "gc again s",
                      "a snapshot ms", "with its flushes ms"});
  const SnapshotCost first = add_snapshots(path, 0, 100);
  report_snapshots(table, report, path, 100, first, first);
  std::size_t there = 100;
  for (std::size_t count = 1000; there < most;
       count = std::min(count * 10, std::max(most, count + 1))) {
    count = std::min(count, most);
    if (count - there > 100) add_snapshots(path, there, count - 100);
    report_snapshots(table, report, path, count,
                     add_snapshots(path, std::max(there, count - 100), count), first);
    there = count;
  }
  table.print();
}

// Branches.

// Each with its own page, and therefore its own pack.
void add_branches(const std::string& path, std::size_t count) {
  bench::in_child([&] {
    auto store = vellum::Store::open_or_create(path);
    for (std::size_t i = 0; i < count; ++i) {
      const auto name = fmt::format("b{:05}", i);
      {
        auto region = store.create_region(name, 1u << 20);
        bench::fill_with_integers({static_cast<std::byte*>(region.data()), bench::kPageBytes}, i);
        region.commit("a page");
      }
      store.create_branch(name + "-idle", name);  // never opened
    }
    return 0;
  });
}

double bytes_on_disk(const std::string& directory) {
  double bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    struct stat status{};
    if (lstat(entry.path().c_str(), &status) == 0)
      bytes += static_cast<double>(status.st_blocks) * 512;
  }
  return bytes;
}

void run_branches(const bench::Options& options, bench::Report& report) {
  const std::size_t count = std::max<std::size_t>(options.number("branches", 200) / 2, 1);
  const std::string path = options.scratch() + "/branches";
  add_branches(path, count);
  const double each = bytes_on_disk(path + "/branches") / static_cast<double>(2 * count);
  const Cost versions = cost_of_versions(path), gc = cost_of_gc(path), stat = cost_of_stat(path);
  bench::Table table({"branches", "KiB each", "versions s", "gc s", "stat s"});
  table.row({std::to_string(2 * count), bench::fixed(each / 1024, 1),
             bench::fixed(versions.seconds, 3), bench::fixed(gc.seconds, 2),
             bench::fixed(stat.seconds, 2)});
  fmt::print("\n");
  table.print();
  const std::string name = fmt::format("{} branches: ", 2 * count);
  report.target(name + "an idle one, KiB on disk", each / 1024, 64);
  report.target(name + "versions, s", versions.seconds, 0.3);
  report.figure(name + "gc, s", gc.seconds);
  report.figure(name + "stat, s", stat.seconds);
}

// Packs.

void limit_descriptors(rlim_t most) {
  const rlimit limit{most, most};
  bench::check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

void run_packs(const bench::Options& options, bench::Report& report) {
  const std::size_t count = options.number("packs", 300);
  const rlim_t descriptors = options.number("descriptors", 128);
  const std::string path = options.scratch() + "/packs";
  add_branches(path, count);
  const std::pair<const char*, std::function<void(vellum::Store&)>> works[] = {
      {"stat", [](auto& store) { store.stat(); }},
      {"gc", [](auto& store) { store.collect_garbage(); }},
      {"verify",
       [](auto& store) {
         if (!store.verify({.read_data = true}).damages.empty())
           throw std::runtime_error("verify finds damage");
       }},
      {"a commit of 4 MiB",
       [](auto& store) {
         auto region = store.create_region("large", 4 * kMiB);
         bench::fill_with_integers({static_cast<std::byte*>(region.data()), 4 * kMiB}, 99);
         region.commit("large");
       }},
  };
  bench::Table table({fmt::format("{} packs, {} descriptors", count, descriptors), "s", "works"});
  double failures = 0;
  for (const auto& [name, body] : works) {
    const Cost cost = cost_of(path, [&](vellum::Store& store) {
      limit_descriptors(descriptors);
      body(store);
    });
    failures += cost.failed ? 1 : 0;
    table.row({name, bench::fixed(cost.seconds, 2), cost.failed ? "NO" : "yes"});
  }
  fmt::print("\n");
  table.print();
  report.target(fmt::format("{} packs, {} descriptors: failures", count, descriptors), failures, 0);
}

// Sparse files.

// `bytes` of integers, a MiB at a time and evenly spread over the file.
void make_file(const std::string& file, std::uint64_t file_bytes, std::uint64_t bytes) {
  std::ofstream out(file, std::ios::binary);
  std::vector<std::byte> piece(kMiB);
  for (std::uint64_t i = 0; i < bytes / kMiB; ++i) {
    bench::fill_with_integers(piece, i);
    out.seekp(static_cast<std::streamoff>(file_bytes / (bytes / kMiB) * i / kMiB * kMiB));
    out.write(reinterpret_cast<const char*>(piece.data()),
              static_cast<std::streamsize>(piece.size()));
  }
  out.close();
  std::filesystem::resize_file(file, file_bytes);
}

struct CopyCost {
  Cost in, out;
};

CopyCost cost_of_copies(const std::string& path, const std::string& name, const std::string& file) {
  CopyCost cost;
  cost.in = cost_of(path, [&](vellum::Store& store) { store.import_file(name, file, "in"); });
  cost.out = cost_of(path, [&](vellum::Store& store) { store.export_file(name, file + ".out"); });
  std::filesystem::remove(file);
  std::filesystem::remove(file + ".out");
  return cost;
}

void run_sparse(const bench::Options& options, bench::Report& report) {
  const std::uint64_t bytes = std::max<std::uint64_t>(options.number("sparse-mib", 64), 1) * kMiB;
  const std::string path = options.scratch() + "/sparse", file = options.scratch() + "/file";
  vellum::Store::create(path);
  make_file(file, bytes, bytes);
  const CopyCost plain = cost_of_copies(path, "plain", file);
  make_file(file, kTiB, bytes);
  const CopyCost sparse = cost_of_copies(path, "sparse", file);
  bench::Table table(
      {"of data " + bench::human_bytes(static_cast<double>(bytes)), "import s", "export s"});
  table.row(
      {"a file of that", bench::fixed(plain.in.seconds, 2), bench::fixed(plain.out.seconds, 2)});
  table.row(
      {"a file of 1 TiB", bench::fixed(sparse.in.seconds, 2), bench::fixed(sparse.out.seconds, 2)});
  fmt::print("\n");
  table.print();
  report.target("import of a sparse file of 1 TiB / of its data",
                sparse.in.seconds / plain.in.seconds, 2);
  report.target("export of a sparse file of 1 TiB / of its data",
                sparse.out.seconds / plain.out.seconds, 2);
}

// Scattered reads.

// A word in each of `count` pages of 1 TiB has data. The MiB for reading them, or as many zero
// pages next to them.
double memory_of_reads(const std::string& path, std::size_t count, vellum::Engine engine,
                       bool zero) {
  return bench::in_child([&] {
    auto store = vellum::Store::open(path);
    vellum::RegionOptions region_options;
    region_options.engine = engine;
    const auto region = store.open_version("main", region_options);
    std::mt19937_64 random(7);
    const auto pages = bench::pick_pages(random, kTiB / bench::kPageBytes, count);
    const auto* const base = static_cast<const std::byte*>(region.data());
    const double before = memory_mib("VmRSS") + memory_mib("VmPTE");
    std::uint64_t sum = 0;
    for (const std::uint64_t page : pages) {
      sum += std::to_integer<std::uint64_t>(base[(zero ? page ^ 64 : page) * bench::kPageBytes]);
    }
    if (sum == 0 && !zero) throw std::runtime_error("the pages are empty");
    return memory_mib("VmRSS") + memory_mib("VmPTE") - before;
  });
}

constexpr std::pair<vellum::Engine, bool> kReads[] = {{vellum::Engine::automatic, false},
                                                      {vellum::Engine::automatic, true},
                                                      {vellum::Engine::sigsegv, false},
                                                      {vellum::Engine::sigsegv, true}};

void run_scattered(const bench::Options& options, bench::Report& report) {
  const std::size_t count = options.number("scattered", 20000);
  const std::string path = options.scratch() + "/scattered";
  bench::in_child([&] {
    auto store = vellum::Store::create(path);
    auto region = store.create_region("main", kTiB);
    std::mt19937_64 random(7);
    for (const std::uint64_t page : bench::pick_pages(random, kTiB / bench::kPageBytes, count)) {
      static_cast<std::byte*>(region.data())[page * bench::kPageBytes] = std::byte{1};
    }
    region.commit("scattered");
    return 0;
  });
  const double touched = static_cast<double>(count) * bench::kPageBytes / kBytesInMiB;
  bench::Table table({"scattered reads of 1 TiB", "pages", "MiB of pages", "MiB taken", "ratio"});
  for (const auto& [engine, zero] : kReads) {
    const double taken = memory_of_reads(path, count, engine, zero);
    const std::string name =
        fmt::format("{}, {}", zero ? "zeros" : "a word in each",
                    engine == vellum::Engine::sigsegv ? "sigsegv" : "default engine");
    table.row({name, std::to_string(count), bench::fixed(touched, 1), bench::fixed(taken, 1),
               bench::fixed(taken / touched, 2)});
    report.target("scattered reads, " + name + ": memory / pages", taken / touched, 4);
  }
  fmt::print("\n");
  table.print();
}

using Part = void (*)(const bench::Options&, bench::Report&);
constexpr std::pair<const char*, Part> kParts[] = {{"snapshots", run_snapshots},
                                                   {"branches", run_branches},
                                                   {"packs", run_packs},
                                                   {"sparse", run_sparse},
                                                   {"scattered", run_scattered}};

void run(const bench::Options& options) {
  bench::Report report("scale");
  const std::string part = options.text("part", "all");
  bool any = false;
  for (const auto& [name, body] : kParts) {
    if (part != "all" && part != name) continue;
    body(options, report);
    any = true;
  }
  if (!any) {
    throw std::runtime_error("--part: snapshots, branches, packs, sparse, scattered or all");
  }
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("scale", argc, argv, run); }
