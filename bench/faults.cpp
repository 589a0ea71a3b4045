// bench faults: how many pages a second are loaded, or become writable, on first touch.
//
// One word of each page is read, or stored to, once, in order or in random order, by one thread or
// by several (each its share of the pages). The regions: one with data (integers, compressed in the
// store), with faults of 64, 4 and 256 KiB and without read-ahead, whose thread uses a processor
// that the program's threads may need; one with zero pages only; and a new one. Each run is a
// separate process; the files that it reads are in the page cache. The peers: a private mapping of
// a plain file of the same bytes, also in the page cache, and, for the new region, anonymous
// memory.
//
// Reads are of an open version (open_version), writes of the branch; engine mapped uses its image
// for both, which was created before.
//
// The targets are for engine uffd with 1 and 2 threads. A page of data is decoded before it is
// written; decoding takes as long as reading in the same order.
//
// With --events 1, a second table has the events that prevent threads from scaling on more
// processors than this machine has, counted by the kernel for the touching threads: TLB flushes
// requested from other processors, and waits for kernel locks, per thousand pages.
//
//   bench_faults [--json FILE] [--dir DIR] [--mib 64] [--rounds 3] [--most-threads 2]
//                [--engine all|uffd|sigsegv|mapped] [--only data|zeros|new] [--events 0]
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

#include "lib/child.hpp"
#include "lib/kernel_events.hpp"
#include "lib/report.hpp"
#include "lib/workload.hpp"

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
  bool reads_ahead = true;
  std::string name() const {
    const char* engine_name = vellum::engine_name(engine);
    if (!reads_ahead) return fmt::format("{}, no read-ahead", engine_name);
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

// The sum of the words read.
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
  bench::KernelEventCounts events;
};

struct Manner {
  bool write = false;
  std::size_t threads = 1;
  bool counts_events = false;
};

// `base`: an untouched range.
Touched touch_all(std::byte* base, const Order& order, const Manner& manner) {
  struct Share {
    std::uint64_t sum = 0;
    bench::Clock::time_point start, end;
    bench::KernelEventCounts events;
  };
  const std::size_t thread_count = manner.threads;
  std::latch ready(static_cast<std::ptrdiff_t>(thread_count));
  std::vector<Share> shares(thread_count);
  std::vector<std::thread> threads;
  threads.reserve(thread_count);
  const std::span<const std::uint32_t> all(order);
  const std::size_t count = all.size() / thread_count;
  for (std::size_t i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      ready.arrive_and_wait();
      std::optional<bench::KernelEvents> events;
      if (manner.counts_events) events.emplace();
      shares[i].start = bench::Clock::now();
      shares[i].sum = touch(base, all.subspan(i * count, count), manner.write);
      shares[i].end = bench::Clock::now();
      if (events) shares[i].events = events->counts();
    });
  }
  Touched out;
  auto start = bench::Clock::time_point::max(), end = bench::Clock::time_point::min();
  for (std::size_t i = 0; i < thread_count; ++i) {
    threads[i].join();
    start = std::min(start, shares[i].start);
    end = std::max(end, shares[i].end);
    out.sum += shares[i].sum;
    out.events.remote_flushes += shares[i].events.remote_flushes;
    out.events.lock_waits += shares[i].events.lock_waits;
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
        counts_events_(options.number("events", 0) != 0),
        engines_(bench::engines_named(options.text("engine", "all"))) {
    const std::uint64_t most_threads = options.number("most-threads", 2);
    for (std::size_t threads = 1; threads <= most_threads; threads *= 2)
      threads_.push_back(threads);
    if (counts_events_) bench::KernelEvents();  // reports early what this machine lacks
    for (const Kind kind : {Kind::data, Kind::zeros}) prepare(kind);
  }

  void run(bench::Report& report) {
    bench::prefer_this_process();  // waits for a processor would distort the figures
    std::vector<std::string> heading{"thousand pages/s, threads:"};
    for (const std::size_t threads : threads_) heading.push_back(std::to_string(threads));
    for (const std::size_t threads : threads_) {
      heading.push_back(fmt::format("{} / peer", threads));
    }
    bench::Table table(heading);
    std::vector<std::string> events_heading{"for 1,000 pages, threads:"};
    for (const char* what : {"TLB flushes", "lock waits"}) {
      for (const std::size_t threads : threads_)
        events_heading.push_back(fmt::format("{}, {}", what, threads));
    }
    bench::Table events_table(events_heading);
    for (const Kind kind : {Kind::data, Kind::zeros, Kind::fresh}) {
      if (!only_.empty() && only_ != kKindNames[static_cast<std::size_t>(kind)]) continue;
      for (const bool write : {false, true}) {
        for (const bool random : {false, true})
          run_case({kind, write, random}, table, events_table, report);
      }
    }
    table.print();
    if (counts_events_) {
      fmt::print("\n");
      events_table.print();
    }
    check_targets(report);
  }

 private:
  std::string path_of(Kind kind) const {
    return directory_ + "/" + kKindNames[static_cast<std::size_t>(kind)];
  }
  std::size_t pages() const { return bytes_ / bench::kPageBytes; }

  // A store for each engine, since only one of them keeps an image in it; and the plain file.
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

  // Zeros are loaded by 2 MiB, whatever the fault size for data.
  std::vector<Way> ways_of(Kind kind) const {
    std::vector<Way> ways;
    for (const auto engine : engines_) {
      ways.push_back({engine});
      if (kind != Kind::data || engine == vellum::Engine::mapped) continue;
      for (const std::uint32_t kib : {4U, 256U}) ways.push_back({engine, kib << 10});
      ways.push_back({engine, 0, false});
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
      if (!way.reads_ahead) region.advise({0, bytes_}, vellum::Advice::random);
      return touch_all(static_cast<std::byte*>(region.data()), order_of(pages(), c.random),
                       {c.write, threads, counts_events_});
    });
    if (c.kind == Kind::fresh) std::filesystem::remove_all(path);
    return out;
  }

  Touched in_plain(const Case& c, std::size_t threads) const {
    std::optional<std::string> file;
    if (c.kind != Kind::fresh) file = path_of(c.kind) + "-file";
    return bench::in_child([&] {
      const Mapping mapping(file, bytes_);
      return touch_all(mapping.data(), order_of(pages(), c.random),
                       {c.write, threads, counts_events_});
    });
  }

  // The median of rounds, for a thousand pages.
  std::string per_thousand(const std::vector<Touched>& rounds,
                           std::uint64_t bench::KernelEventCounts::* count) const {
    const double events = bench::median_of(
        rounds, [&](const Touched& t) { return static_cast<double>(t.events.*count); });
    return bench::fixed(events / static_cast<double>(pages()) * 1e3, 2);
  }

  void run_case(const Case& c, bench::Table& table, bench::Table& events_table,
                bench::Report& report) {
    const auto ways = ways_of(c.kind);
    const std::size_t sources = ways.size() + 1;  // the last is the peer
    std::vector<std::map<std::size_t, std::vector<Touched>>> touched(sources);
    // Alternating, to expose all to the same disturbances. The first round fills the page cache.
    in_plain(c, 1);
    for (std::uint64_t round = 0; round < rounds_; ++round) {
      for (const std::size_t threads : threads_) {
        const Touched plain = in_plain(c, threads);
        touched.back()[threads].push_back(plain);
        for (std::size_t i = 0; i < ways.size(); ++i) {
          touched[i][threads].push_back(in_region(ways[i], c, threads));
          if (touched[i][threads].back().sum != plain.sum)
            throw std::runtime_error(c.name() + ": the sums differ");
        }
      }
    }
    const auto rate_of = [&](std::size_t source, std::size_t threads) {
      const double seconds = bench::median_of(touched[source][threads], &Touched::seconds);
      return static_cast<double>(pages()) / seconds;
    };
    for (std::size_t i = 0; i < sources; ++i) {
      const char* plain_name = c.kind == Kind::fresh ? "anonymous memory" : "plain file";
      const std::string name = c.name() + ", " + (i < ways.size() ? ways[i].name() : plain_name);
      std::vector<std::string> cells{name}, ratios, flushes{name}, waits;
      for (const std::size_t threads : threads_) {
        const double rate = rate_of(i, threads);
        medians_[name][threads] = rate;
        cells.push_back(bench::fixed(rate / 1e3, 0));
        ratios.push_back(bench::fixed(rate / rate_of(ways.size(), threads), 3));
        using Counts = bench::KernelEventCounts;
        flushes.push_back(per_thousand(touched[i][threads], &Counts::remote_flushes));
        waits.push_back(per_thousand(touched[i][threads], &Counts::lock_waits));
        report.figure(fmt::format("{}, {} threads, pages_per_second", name, threads), rate);
      }
      cells.insert(cells.end(), ratios.begin(), ratios.end());
      table.row(cells);
      flushes.insert(flushes.end(), waits.begin(), waits.end());
      events_table.row(flushes);
    }
  }

  // Pages a second; 0: not measured.
  double rate(const Case& c, const std::string& of, std::size_t threads) const {
    const auto found = medians_.find(c.name() + ", " + of);
    return found == medians_.end() ? 0 : found->second.at(threads);
  }

  void check_targets(bench::Report& report) const {
    for (const Kind kind : {Kind::data, Kind::zeros, Kind::fresh}) {
      for (const bool random : {false, true}) {
        for (const char* way : {"uffd", "uffd, no read-ahead"}) {
          check_writes({kind, true, random}, way, report);
        }
      }
    }
  }

  void check_writes(const Case& c, const std::string& way, bench::Report& report) const {
    const double one = rate(c, way, 1);
    if (one == 0) return;
    const std::string name = c.name() + ", " + way;
    if (threads_.size() > 1)
      report.target(name + ": 2 threads / 1", rate(c, way, 2) / one, 1.5, false);
    if (c.kind == Kind::data) {
      const double reading = rate({c.kind, false, c.random}, way, 1);
      const double without_decoding = 1 / (1 / one - 1 / reading);
      report.target(name + ", less reading / plain file, 1 thread",
                    without_decoding / rate(c, "plain file", 1), 0.9, false);
    } else if (c.kind == Kind::zeros) {
      report.target(name + " / plain file, 1 thread", one / rate(c, "plain file", 1), 0.9, false);
    } else if (!c.random) {
      report.target(name + " / anonymous memory, 1 thread", one / rate(c, "anonymous memory", 1), 1,
                    false);
    }
  }

  std::string directory_;
  std::size_t bytes_;
  std::uint64_t rounds_;
  std::string only_;
  bool counts_events_;
  std::vector<vellum::Engine> engines_;
  std::vector<std::size_t> threads_;                              // 1, 2, 4 and so on
  std::map<std::string, std::map<std::size_t, double>> medians_;  // by row and threads
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
