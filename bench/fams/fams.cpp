// bench fams: one cell of the table of table.py: one structure in one store, one workload,
// committed every so many operations.
//
//   bench_fams --store NAME --structure list|btree|hash|scattered --workload NAME
//              [--every 1] [--keys 100000] [--operations 100000] [--seconds 10] [--check 0]
//              [--scattered-mib 1024] [--dir DIR] [--json FILE]
//   bench_fams --list 1            the names of the built stores
//
// Stores: peer_*.cpp; workloads: workloads.hpp. With PMEM_IS_PMEM_FORCE=1 in the environment,
// --dir (on tmpfs) is persistent memory. The measurement ends after --seconds, if not before.
//
// Operations per second are of the operations and their commits. The "closed" ones include closing
// the store and the file system's pending writes. Device bytes, from the device's own counter, have
// the same two figures. Afterwards the number of keys and a sample of values are compared with the
// expected ones; with --check 1, all of them, after reopening.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "device.hpp"
#include "lib/report.hpp"
#include "store.hpp"
#include "workloads.hpp"

namespace {

using namespace fams;

char** arguments;

const std::map<std::string, MakeStore>& stores() {
  static const std::map<std::string, MakeStore> all{
      {"volatile", make_volatile},
      {"msync", make_msync},
      {"msync-pages", make_msync},
      {"msync-folios", make_msync},
      {"floor", make_floor},
#ifdef FAMS_VELLUM
      {"vellum-pages", make_vellum},
      {"vellum-marks", make_vellum},
#endif
#ifdef FAMS_INSTRUMENTED
      {"vellum-cards", make_vellum},
      {"instrumented", make_volatile},
      {"instrumented-window", make_volatile},
#endif
#ifdef FAMS_PMDK
      {"pmdk", make_pmdk},
      {"pmdk-arena", make_pmdk},
#endif
#ifdef FAMS_LMDB
      {"lmdb", make_lmdb},
#endif
#ifdef FAMS_SQLITE
      {"sqlite", make_sqlite},
#endif
#ifdef FAMS_BDB
      {"bdb", make_bdb},
#endif
  };
  return all;
}

bool is_pmdk(const std::string& store) { return store.rfind("pmdk", 0) == 0; }

bool is_set(const char* variable, const char* value) {
  const char* is = std::getenv(variable);
  return is != nullptr && (value == nullptr || std::string(is) == value);
}

void execute_again() {
  ::execv("/proc/self/exe", arguments);
  bench::check(false, "execv");
}

Shape shape_named(const std::string& name) {
  if (name == "list") return Shape::list;
  if (name == "btree") return Shape::btree;
  if (name == "hash") return Shape::hash;
  if (name == "scattered") return Shape::scattered;
  throw std::runtime_error("no structure " + name);
}

// Without persistent memory, libpmemobj calls msync for each range, and filling it takes minutes.
// Therefore a child with PMEM_IS_PMEM_FORCE=1 fills it.
void fill_in_child(const std::string& directory) {
  const pid_t child = ::fork();
  bench::check(child >= 0, "fork");
  if (child == 0) {
    ::setenv("PMEM_IS_PMEM_FORCE", "1", 1);
    ::setenv("FAMS_FILL_ONLY", directory.c_str(), 1);
    execute_again();
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("filling failed");
}

struct Cell {
  Setting setting;
  Workload workload;
  std::uint64_t every;
  double seconds_limit;
  bool check;
};

Cell cell_of(const bench::Options& options) {
  Cell cell;
  const std::uint64_t keys = options.number("keys", 100'000);
  const std::uint64_t operations = options.number("operations", 100'000);
  const std::uint64_t scattered_bytes = options.number("scattered-mib", 1024) << 20;
  const Shape shape = shape_named(options.text("structure", "hash"));
  cell.workload = make_workload(options.text("workload", "insert"), shape,
                                shape == Shape::scattered ? scattered_bytes / 8 : keys, operations);
  cell.setting = {options.text("store", ""), options.scratch(),
                  Size{shape, cell.workload.keys, scattered_bytes},
                  is_set("PMEM_IS_PMEM_FORCE", "1"), true};
  cell.every = std::max<std::uint64_t>(options.number("every", 1), 1);
  cell.seconds_limit = static_cast<double>(options.number("seconds", 10));
  cell.check = options.number("check", 0) != 0;
  if (stores().count(cell.setting.name) == 0) {
    throw Unsupported("no store " + cell.setting.name + " in this build");
  }
  return cell;
}

std::unique_ptr<Store> filled_store(Cell& cell) {
  const MakeStore make = stores().at(cell.setting.name);
  const char* fill_only = std::getenv("FAMS_FILL_ONLY");
  if (fill_only != nullptr) cell.setting.directory = fill_only;
  const bool by_child = is_pmdk(cell.setting.name) && !cell.setting.persistent_memory;
  if (by_child) {
    fill_in_child(cell.setting.directory);
    cell.setting.fresh = false;
    return make(cell.setting);
  }
  std::unique_ptr<Store> store = make(cell.setting);
  fill(*store, cell.workload);
  store->settle();
  return store;
}

void check_all(Store& store, const Cell& cell, std::uint64_t operations) {
  store.open();
  verify(store.structure(), cell.workload, operations, 1);
  store.close();
}

void measure(Cell& cell, bench::Report& report) {
  const std::unique_ptr<Store> store = filled_store(cell);
  if (std::getenv("FAMS_FILL_ONLY") != nullptr) return store->close();
  const Device device(cell.setting.directory);
  device.sync();
  if (!cell.setting.persistent_memory) bench::prefer_this_process();  // it waits for a disk
  const auto bytes_before = device.bytes_written();
  const Progress progress = run(*store, cell.workload, cell.every, cell.seconds_limit);
  const auto bytes_after = device.bytes_written();
  if (store->can_read()) {
    const std::uint64_t step = cell.setting.size.shape == Shape::list ? 1 : 97;
    verify(store->structure(), cell.workload, progress.operations, step);
    store->commit();
  }
  const auto closing = bench::Clock::now();
  store->close();
  device.sync();
  const double closed_seconds = progress.seconds + bench::seconds_since(closing);
  const auto bytes_closed = device.bytes_written();
  if (cell.check && store->keeps()) check_all(*store, cell, progress.operations);

  const auto operations = static_cast<double>(progress.counted);
  report.figure("operations", operations);
  report.figure("seconds", progress.seconds);
  report.figure("operations per second", operations / progress.seconds);
  report.figure("operations per second, closed", operations / closed_seconds);
  if (bytes_before && bytes_after && bytes_closed) {
    const auto since = [&](std::uint64_t bytes) {
      return static_cast<double>(bytes - *bytes_before) / operations;
    };
    report.figure("device bytes per operation", since(*bytes_after));
    report.figure("device bytes per operation, closed", since(*bytes_closed));
  }
  fmt::print("{}, every {}: {:.0f} operations/s\n", cell.setting.name, cell.every,
             operations / progress.seconds);
}

void run_cell(const bench::Options& options) {
  if (options.number("list", 0) != 0) {
    for (const auto& [name, make] : stores()) fmt::print("{}\n", name);
    return;
  }
  Cell cell = cell_of(options);
  // libpmem reads it before main(): pools have to be mapped at the same address.
  if (is_pmdk(cell.setting.name) && !is_set("PMEM_MMAP_HINT", nullptr)) {
    ::setenv("PMEM_MMAP_HINT", "0x100000000000", 1);
    std::filesystem::remove_all(options.scratch());
    execute_again();
  }
  bench::Report report("fams");
  measure(cell, report);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) {
  arguments = argv;
  return bench::run_main("fams", argc, argv, run_cell);
}
