// bench pause: how long snapshot_async() stops the program, and its total cost.
//
// The peers, in the same run: snapshot(), which returns when all is durable, and fork() of a
// process with as much plain memory, which is how programs save a state without stopping today
// (Redis' BGSAVE): the child has the state, and nothing is durable yet. By tracker: pages, and
// cards that the program marks.
//
// It also measures the size of a region from which cards pay for small commits: commits of 64
// stores in resident regions, with either tracker. The page tracker's scan covers all resident
// pages.
//
//   bench_pause [--json FILE] [--dir DIR] [--mib 4096] [--rounds 20] [--per-mille 10] [--engine
//   automatic|uffd|sigsegv|mapped]
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>
#include <vellum/store.hpp>

#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

double ms(std::chrono::duration<double, std::milli> time) { return time.count(); }

// Plain memory, all of it resident.
class PlainMemory {
 public:
  explicit PlainMemory(std::size_t bytes) : bytes_(bytes) {
    void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bench::check(map != MAP_FAILED, "mmap");
    data_ = static_cast<std::byte*>(map);
    // Pages of 4 KiB, as in a program without large arrays.
    madvise(data_, bytes, MADV_NOHUGEPAGE);
    bench::fill_with_integers({data_, bytes}, 1);
  }
  ~PlainMemory() { munmap(data_, bytes_); }
  PlainMemory(const PlainMemory&) = delete;
  PlainMemory& operator=(const PlainMemory&) = delete;

  // How long fork() takes in the parent.
  double fork_ms() {
    const auto start = bench::Clock::now();
    const pid_t child = fork();
    if (child == 0) _exit(0);
    const double pause_ms = bench::seconds_since(start) * 1e3;
    bench::check(child > 0, "fork");
    waitpid(child, nullptr, 0);
    return pause_ms;
  }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

// The stores of a round; page numbers are drawn before the clock starts.
class Stores {
 public:
  Stores(vellum::Region& region, std::size_t pages_dirty, vellum::Tracker tracker)
      : base_(static_cast<std::byte*>(region.data())),
        pages_(region.size_bytes() / bench::kPageBytes),
        count_(pages_dirty),
        mark_(tracker == vellum::Tracker::cards),
        random_(mark_ ? 8 : 7) {}  // repeating the other tracker's stores would change nothing
  void draw() { picked_ = bench::pick_pages(random_, pages_, count_); }
  double store_ms() {
    const auto start = bench::Clock::now();
    if (mark_) {
      bench::store_and_mark(base_, picked_, random_);
    } else {
      bench::store_into(base_, picked_, random_);
    }
    return bench::seconds_since(start) * 1e3;
  }

 private:
  std::byte* base_;
  std::uint64_t pages_;
  std::size_t count_;
  bool mark_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> picked_;
};

struct Samples {
  std::vector<double> pause, scan, durable, beside, alone, sync, fork, bytes;
};

Samples measure(vellum::Store& store, vellum::Region& region, PlainMemory& plain,
                std::size_t pages_dirty, std::size_t rounds, vellum::Tracker tracker) {
  Stores stores(region, pages_dirty, tracker);
  Samples out;
  for (std::size_t i = 0; i < rounds + 1; ++i) {
    const std::string name = std::to_string(i);
    stores.draw();
    const double alone = stores.store_ms();
    const auto start = bench::Clock::now();
    auto end = region.snapshot_async("async-" + name);
    const double pause = bench::seconds_since(start) * 1e3;
    stores.draw();
    const double beside = stores.store_ms();  // the program continues during the write
    const auto report = end.get();
    const double durable = bench::seconds_since(start) * 1e3;
    const auto begin = bench::Clock::now();
    region.snapshot("sync-" + name);  // of the same number of pages
    const double sync = bench::seconds_since(begin) * 1e3;
    const double fork = plain.fork_ms();
    if (i == 0) continue;  // warm-up
    out.pause.push_back(pause);
    out.scan.push_back(ms(report.scan_time));
    out.durable.push_back(durable);
    out.alone.push_back(alone);
    out.beside.push_back(beside);
    out.sync.push_back(sync);
    out.fork.push_back(fork);
    out.bytes.push_back(static_cast<double>(report.bytes_written));
  }
  for (const auto& info : store.versions()) {
    if (!info.is_branch) store.remove_snapshot(info.name);
  }
  return out;
}

const char* name_of(vellum::Tracker tracker) {
  return tracker == vellum::Tracker::cards ? "cards" : "pages";
}

class Bench {
 public:
  explicit Bench(const bench::Options& options)
      : directory_(options.scratch()),
        bytes_(options.number("mib", 4096) << 20),
        rounds_(options.number("rounds", 20)),
        at_once_(bytes_ / bench::kPageBytes * options.number("per-mille", 10) / 1000) {
    options_.engine = bench::engine_named(options.text("engine", "automatic"));
  }

  void run(bench::Report& report) {
    bench::prefer_this_process();
    pauses(report);
    small_commits(report);
  }

 private:
  void pauses(bench::Report& report) {
    auto store = vellum::Store::create(directory_ + "/store");
    {
      auto region = store.create_region("main", bytes_, options_);
      bench::fill_with_integers({static_cast<std::byte*>(region.data()), bytes_}, 1);
      region.commit("filled");
    }
    PlainMemory plain(bytes_);
    fmt::print("{} MiB resident, {} rounds; milliseconds, p50 / worst\n\n", bytes_ >> 20, rounds_);
    bench::Table table({"tracker, dirty pages", "pause", "(scan)", "durable after", "stores during",
                        "stores before", "snapshot()", "fork()", "fork/pause", "bytes"});
    for (const auto tracker : {vellum::Tracker::pages, vellum::Tracker::cards}) {
      auto options = options_;
      options.tracker = tracker;
      auto region = store.open_region("main", options);
      region.prefetch({0, bytes_});
      for (const std::size_t dirty : {at_once_ / 10, at_once_}) {
        const auto samples = measure(store, region, plain, dirty, rounds_, tracker);
        add(fmt::format("{}, {}", name_of(tracker), dirty), samples, table, report);
        if (dirty == at_once_) targets(tracker, dirty, samples, report);
      }
    }
    table.print();
  }

  static void add(const std::string& name, const Samples& s, bench::Table& table,
                  bench::Report& report) {
    const auto both = [](const std::vector<double>& v) {
      return fmt::format("{:.1f} / {:.1f}", bench::percentile(v, 50), bench::percentile(v, 100));
    };
    const auto p50 = [](const std::vector<double>& v) { return bench::percentile(v, 50); };
    table.row({name, both(s.pause), bench::fixed(p50(s.scan), 1), both(s.durable), both(s.beside),
               bench::fixed(p50(s.alone), 1), both(s.sync), both(s.fork),
               bench::fixed(p50(s.fork) / p50(s.pause), 1), bench::human_bytes(p50(s.bytes))});
    for (const auto& [what, samples] : {std::pair{"pause", &s.pause},
                                        {"scan", &s.scan},
                                        {"durable", &s.durable},
                                        {"stores_beside", &s.beside},
                                        {"stores_alone", &s.alone},
                                        {"snapshot", &s.sync},
                                        {"fork", &s.fork},
                                        {"bytes", &s.bytes}}) {
      report.figure(fmt::format("{}, {}_p50", name, what), p50(*samples));
      report.figure(fmt::format("{}, {}_worst", name, what), bench::percentile(*samples, 100));
    }
  }

  static void targets(vellum::Tracker tracker, std::size_t dirty, const Samples& s,
                      bench::Report& report) {
    const double pause = bench::percentile(s.pause, 50);
    report.target(fmt::format("pause with {} dirty pages, {}, ms (p50)", dirty, name_of(tracker)),
                  pause, tracker == vellum::Tracker::cards ? 2 : 5);
    report.target(fmt::format("fork() of as much memory, over the pause, {}", name_of(tracker)),
                  bench::percentile(s.fork, 50) / pause, 1, false);
  }

  // The regions are all zero, and every page of them has been read.
  void small_commits(bench::Report& report) {
    fmt::print("\na commit of 64 stores, microseconds, p50\n\n");
    bench::Table table({"resident MiB", "pages: stores", "commit", "(scan)", "cards: stores",
                        "commit", "(scan)", "pages / cards"});
    for (std::size_t bytes = bytes_ / 64; bytes <= bytes_; bytes *= 4) {
      std::vector<std::string> cells{std::to_string(bytes >> 20)};
      double all[2] = {};
      for (const auto tracker : {vellum::Tracker::pages, vellum::Tracker::cards}) {
        const Small small = small_commit(bytes, tracker);
        const double sum = small.stores_us + small.commit_us;
        all[tracker == vellum::Tracker::cards] = sum;
        for (const double us : {small.stores_us, small.commit_us, small.scan_us})
          cells.push_back(bench::fixed(us, 0));
        report.figure(fmt::format("64 stores, {} MiB, {}, us", bytes >> 20, name_of(tracker)), sum);
      }
      cells.push_back(bench::fixed(all[0] / all[1], 2));
      table.row(cells);
    }
    table.print();
  }

  struct Small {
    double stores_us = 0, commit_us = 0, scan_us = 0;
  };

  Small small_commit(std::size_t bytes, vellum::Tracker tracker) const {
    const std::string path = directory_ + "/small";
    std::filesystem::remove_all(path);
    auto store = vellum::Store::create(path);
    auto options = options_;
    options.tracker = tracker;
    auto region = store.create_region("main", bytes, options);
    const auto* const data = static_cast<const volatile std::byte*>(region.data());
    for (std::size_t at = 0; at < bytes; at += bench::kPageBytes) static_cast<void>(data[at]);
    Stores stores(region, 64, tracker);
    std::vector<double> stored, committed, scanned;
    for (std::size_t i = 0; i < 10 * rounds_ + 1; ++i) {
      stores.draw();
      const double stores_ms = stores.store_ms();
      const auto report = region.commit();
      if (i == 0) continue;  // warm-up
      stored.push_back(1e3 * stores_ms);
      committed.push_back(1e3 * ms(report.total_time));
      scanned.push_back(1e3 * ms(report.scan_time));
    }
    return {bench::percentile(stored, 50), bench::percentile(committed, 50),
            bench::percentile(scanned, 50)};
  }

  const std::string directory_;
  const std::size_t bytes_, rounds_, at_once_;
  vellum::RegionOptions options_;
};

void run(const bench::Options& options) {
  bench::Report report("pause");
  Bench(options).run(report);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("pause", argc, argv, run); }
