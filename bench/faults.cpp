// bench faults: how many pages a second come in, or become writable, on first touch.
//
// One word of each page is read, or stored to, once, in order or in random order, by one thread and
// by two (each its half of the pages): of a region with data (integers, compressed in the store),
// by faults of 64, 4 and 256 KiB; of one with zero pages only, and of one that was just made. Each
// run is a process of its own; what it reads is in the page cache. Beside it: a private mapping of
// a plain file of the same bytes, also in the page cache, and, for the new region, anonymous
// memory.
//
// Reads go to a version that is open (open_version), writes to the branch; engine mapped has its
// image for both, which was made before.
//
//   bench_faults [--json FILE] [--dir DIR] [--mib 64] [--rounds 3]
//                [--engine all|uffd|sigsegv|mapped] [--only data|zeros|new]
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <latch>
#include <map>
#include <numeric>
#include <optional>
#include <thread>
#include <vellum/store.hpp>

#include "child_lib.hpp"
#include "report_lib.hpp"
#include "workload_lib.hpp"

namespace {

enum class Kind { data, zeros, fresh };
constexpr const char* kKindNames[] = {"data", "zeros", "new"};

struct Case {
  Kind kind;
  bool write;
  bool random;
  std::string name() const {
    return fmt::format("{}, {}, {}", kKindNames[static_cast<std::size_t>(kind)],
                       write ? "write" : "read", random ? "random" : "in order");
  }
};

// How a region is opened.
struct Way {
  vellum::Engine engine;
  std::uint32_t fault_bytes = 0;
  std::string name() const {
    const char* engine_name = vellum::engine_name(engine);
    if (fault_bytes == 0) return engine_name;
    return fmt::format("{} by {} KiB", engine_name, fault_bytes >> 10);
  }
};

using Order = std::vector<std::uint32_t>;  // of pages

Order order_of(std::size_t pages, bool random) {
  Order out(pages);
  std::iota(out.begin(), out.end(), 0U);
  if (random) {
    std::mt19937_64 generator(11);
    std::shuffle(out.begin(), out.end(), generator);
  }
  return out;
}

// The sum of what was read.
std::uint64_t touch(std::byte* base, std::span<const std::uint32_t> pages, bool write) {
  std::uint64_t sum = 0;
  for (const std::uint32_t page : pages) {
    auto* const word = reinterpret_cast<volatile std::uint64_t*>(base + page * bench::kPageBytes);
    if (write) {
      *word = page;
    } else {
      sum += *word;
    }
  }
  return sum;
}

struct Touched {
  double seconds = 0;
  std::uint64_t sum = 0;
};

// `base`: nothing of it has been touched.
Touched touch_all(std::byte* base, const Order& order, bool write, std::size_t thread_count) {
  struct Share {
    std::uint64_t sum = 0;
    bench::Clock::time_point start, end;
  };
  std::latch ready(static_cast<std::ptrdiff_t>(thread_count));
  std::vector<Share> shares(thread_count);
  std::vector<std::thread> threads;
  threads.reserve(thread_count);
  const std::span<const std::uint32_t> all(order);
  const std::size_t count = all.size() / thread_count;
  for (std::size_t i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      ready.arrive_and_wait();
      shares[i].start = bench::Clock::now();
      shares[i].sum = touch(base, all.subspan(i * count, count), write);
      shares[i].end = bench::Clock::now();
    });
  }
  Touched out;
  auto start = bench::Clock::time_point::max(), end = bench::Clock::time_point::min();
  for (std::size_t i = 0; i < thread_count; ++i) {
    threads[i].join();
    start = std::min(start, shares[i].start);
    end = std::max(end, shares[i].end);
    out.sum += shares[i].sum;
  }
  out.seconds = std::chrono::duration<double>(end - start).count();
  return out;
}

class Mapping {
 public:
  // Without a file: anonymous memory.
  Mapping(const std::optional<std::string>& file, std::size_t bytes) : bytes_(bytes) {
    const int fd = file ? open(file->c_str(), O_RDONLY | O_CLOEXEC) : -1;
    if (file && fd < 0) throw std::runtime_error("cannot open " + *file);
    map_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | (file ? 0 : MAP_ANONYMOUS),
                fd, 0);
    if (fd >= 0) close(fd);
    if (map_ == MAP_FAILED) throw std::runtime_error("cannot map");
    // Pages of 4 KiB, as in a region.
    madvise(map_, bytes, MADV_NOHUGEPAGE);
  }
  ~Mapping() { munmap(map_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(map_); }

 private:
  std::size_t bytes_;
  void* map_ = nullptr;
};

class Bench {
 public:
  explicit Bench(const bench::Options& options)
      : directory_(options.scratch()),
        bytes_(options.number("mib", 64) << 20),
        rounds_(options.number("rounds", 3)),
        only_(options.text("only", "")),
        engines_(bench::engines_named(options.text("engine", "all"))) {
    for (const Kind kind : {Kind::data, Kind::zeros}) prepare(kind);
  }

  void run(bench::Report& report) const {
    bench::prefer_this_process();  // threads that wait for a processor would tell nothing
    bench::Table table({"", "1 thread: thousand pages/s", "us a page", "2 threads", "2 / 1",
                        "1 thread / peer", "2 / peer"});
    for (const Kind kind : {Kind::data, Kind::zeros, Kind::fresh}) {
      if (!only_.empty() && only_ != kKindNames[static_cast<std::size_t>(kind)]) continue;
      for (const bool write : {false, true}) {
        for (const bool random : {false, true}) run_case({kind, write, random}, table, report);
      }
    }
    table.print();
  }

 private:
  std::string path_of(Kind kind) const {
    return directory_ + "/" + kKindNames[static_cast<std::size_t>(kind)];
  }
  std::size_t pages() const { return bytes_ / bench::kPageBytes; }

  // A store for each engine, since only one of them keeps an image there; and the plain file.
  std::string store_of(Kind kind, vellum::Engine engine) const {
    return path_of(kind) + "-" + vellum::engine_name(engine);
  }

  void prepare(Kind kind) const {
    for (const auto engine : engines_) {
      auto store = vellum::Store::create(store_of(kind, engine));
      vellum::RegionOptions options;
      options.engine = engine;
      auto region = store.create_region("main", bytes_, options);
      auto* const base = static_cast<std::byte*>(region.data());
      if (kind == Kind::data) bench::fill_with_integers({base, bytes_}, 1);
      region.snapshot("0");
      if (engine == engines_.front()) store.export_file("0", path_of(kind) + "-file");
    }
  }

  // Zeros come in by 2 MiB, whatever a fault brings in of data.
  std::vector<Way> ways_of(Kind kind) const {
    std::vector<Way> ways;
    for (const auto engine : engines_) {
      ways.push_back({engine});
      if (kind != Kind::data || engine == vellum::Engine::mapped) continue;
      for (const std::uint32_t kib : {4U, 256U}) ways.push_back({engine, kib << 10});
    }
    return ways;
  }

  vellum::Region open_region(vellum::Store& store, const Way& way, const Case& c) const {
    vellum::RegionOptions options;
    options.engine = way.engine;
    options.fault_bytes = way.fault_bytes;
    if (c.kind == Kind::fresh) return store.create_region("main", bytes_, options);
    if (c.write || way.engine == vellum::Engine::mapped) return store.open_region("main", options);
    return store.open_version("0", options);
  }

  Touched in_region(const Way& way, const Case& c, std::size_t threads) const {
    const std::string path =
        c.kind == Kind::fresh ? directory_ + "/new-store" : store_of(c.kind, way.engine);
    const Touched out = bench::in_child([&] {
      auto store = c.kind == Kind::fresh ? vellum::Store::create(path) : vellum::Store::open(path);
      const auto region = open_region(store, way, c);
      return touch_all(static_cast<std::byte*>(region.data()), order_of(pages(), c.random), c.write,
                       threads);
    });
    if (c.kind == Kind::fresh) std::filesystem::remove_all(path);
    return out;
  }

  Touched in_plain(const Case& c, std::size_t threads) const {
    std::optional<std::string> file;
    if (c.kind != Kind::fresh) file = path_of(c.kind) + "-file";
    return bench::in_child([&] {
      const Mapping mapping(file, bytes_);
      return touch_all(mapping.data(), order_of(pages(), c.random), c.write, threads);
    });
  }

  void run_case(const Case& c, bench::Table& table, bench::Report& report) const {
    constexpr std::size_t kThreads[] = {1, 2};
    const auto ways = ways_of(c.kind);
    const std::size_t sources = ways.size() + 1;  // the last is the peer
    std::vector<std::map<std::size_t, std::vector<double>>> rates(sources);
    // Turn by turn, so that what else the machine does hits all alike. The first one is for the
    // page cache.
    in_plain(c, 1);
    for (std::uint64_t round = 0; round < rounds_; ++round) {
      for (const std::size_t threads : kThreads) {
        const Touched plain = in_plain(c, threads);
        rates.back()[threads].push_back(static_cast<double>(pages()) / plain.seconds);
        for (std::size_t i = 0; i < ways.size(); ++i) {
          const Touched touched = in_region(ways[i], c, threads);
          if (touched.sum != plain.sum) throw std::runtime_error(c.name() + ": the sums differ");
          rates[i][threads].push_back(static_cast<double>(pages()) / touched.seconds);
        }
      }
    }
    const auto median = [&](std::size_t source, std::size_t threads) {
      return bench::percentile(rates[source][threads], 50);
    };
    for (std::size_t i = 0; i < sources; ++i) {
      const char* plain_name = c.kind == Kind::fresh ? "anonymous memory" : "plain file";
      const std::string name = c.name() + ", " + (i < ways.size() ? ways[i].name() : plain_name);
      const double one = median(i, 1), two = median(i, 2);
      table.row({name, bench::fixed(one / 1e3, 0), bench::fixed(1e6 / one, 2),
                 bench::fixed(two / 1e3, 0), bench::fixed(two / one, 2),
                 bench::fixed(one / median(sources - 1, 1), 3),
                 bench::fixed(two / median(sources - 1, 2), 3)});
      report.figure(name + ", 1 thread, pages_per_second", one);
      report.figure(name + ", 2 threads, pages_per_second", two);
    }
  }

  std::string directory_;
  std::size_t bytes_;
  std::uint64_t rounds_;
  std::string only_;
  std::vector<vellum::Engine> engines_;
};

void run(const bench::Options& options) {
  bench::Report report("faults");
  fmt::print(
      "{} MiB; peer: a private mapping of a plain file, anonymous memory for a new region\n\n",
      options.number("mib", 64));
  Bench(options).run(report);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("faults", argc, argv, run); }
