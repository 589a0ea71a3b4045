// bench pause: how long snapshot_async() keeps the program from going on, and what it costs in all.
//
// Beside it, in the same run: snapshot(), which returns when all is durable, and fork() of a
// process with as much plain memory, which is how programs take a state without stopping today
// (Redis' BGSAVE): the child has the state, and nothing is durable yet.
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
#include <random>
#include <vellum/store.hpp>

#include "report_lib.hpp"
#include "workload_lib.hpp"

namespace {

double ms(std::chrono::duration<double, std::milli> time) { return time.count(); }

// Plain memory, all of it resident.
class PlainMemory {
 public:
  explicit PlainMemory(std::size_t bytes) : bytes_(bytes) {
    void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bench::check(map != MAP_FAILED, "mmap");
    data_ = static_cast<std::byte*>(map);
    // The pages are of 4 KiB, as in a program that is not one large array.
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

// The stores of a round; page numbers are drawn before the clock runs.
class Stores {
 public:
  Stores(vellum::Region& region, std::size_t pages_dirty)
      : base_(static_cast<std::byte*>(region.data())),
        pages_(region.size_bytes() / bench::kPageBytes),
        count_(pages_dirty) {}
  void draw() { picked_ = bench::pick_pages(random_, pages_, count_); }
  double store_ms() {
    const auto start = bench::Clock::now();
    bench::store_into(base_, picked_, random_);
    return bench::seconds_since(start) * 1e3;
  }

 private:
  std::byte* base_;
  std::uint64_t pages_;
  std::size_t count_;
  std::mt19937_64 random_{7};
  std::vector<std::uint64_t> picked_;
};

struct Samples {
  std::vector<double> pause, scan, durable, beside, alone, sync, fork, bytes;
};

Samples measure(vellum::Store& store, vellum::Region& region, PlainMemory& plain,
                std::size_t pages_dirty, std::size_t rounds) {
  Stores stores(region, pages_dirty);
  Samples out;
  for (std::size_t i = 0; i < rounds + 1; ++i) {
    const std::string name = std::to_string(i);
    stores.draw();
    const double alone = stores.store_ms();
    const auto start = bench::Clock::now();
    auto end = region.snapshot_async("async-" + name);
    const double pause = bench::seconds_since(start) * 1e3;
    stores.draw();
    const double beside = stores.store_ms();  // the program goes on while it is written
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

void run(const bench::Options& options) {
  bench::prefer_this_process();
  const std::size_t bytes = options.number("mib", 4096) << 20;
  const std::size_t rounds = options.number("rounds", 20);
  const std::size_t pages = bytes / bench::kPageBytes;
  vellum::RegionOptions region_options;
  region_options.engine = bench::engine_named(options.text("engine", "automatic"));
  auto store = vellum::Store::create(options.scratch() + "/store");
  {
    auto region = store.create_region("main", bytes, region_options);
    bench::fill_with_integers({static_cast<std::byte*>(region.data()), bytes}, 1);
    region.commit("filled");
  }
  auto region = store.open_region("main", region_options);
  region.prefetch({0, bytes});
  PlainMemory plain(bytes);

  fmt::print("{} MiB resident, engine {}, {} rounds; milliseconds, p50 / worst\n\n", bytes >> 20,
             vellum::engine_name(region.engine()), rounds);
  bench::Table table({"dirty pages", "pause", "(scan)", "durable after", "stores beside", "alone",
                      "snapshot()", "fork()", "fork/pause", "bytes"});
  bench::Report report("pause");
  const std::size_t at_once = pages * options.number("per-mille", 10) / 1000;
  for (const std::size_t dirty : {at_once / 10, at_once}) {
    const auto s = measure(store, region, plain, dirty, rounds);
    const auto both = [](const std::vector<double>& v) {
      return fmt::format("{:.1f} / {:.1f}", bench::percentile(v, 50), bench::percentile(v, 100));
    };
    const auto p50 = [](const std::vector<double>& v) { return bench::percentile(v, 50); };
    table.row({std::to_string(dirty), both(s.pause), bench::fixed(p50(s.scan), 1), both(s.durable),
               both(s.beside), bench::fixed(p50(s.alone), 1), both(s.sync), both(s.fork),
               bench::fixed(p50(s.fork) / p50(s.pause), 1), bench::human_bytes(p50(s.bytes))});
    const std::string n = std::to_string(dirty);
    for (const auto& [name, samples] : {std::pair{"pause", &s.pause},
                                        {"scan", &s.scan},
                                        {"durable", &s.durable},
                                        {"stores_beside", &s.beside},
                                        {"stores_alone", &s.alone},
                                        {"snapshot", &s.sync},
                                        {"fork", &s.fork},
                                        {"bytes", &s.bytes}}) {
      report.figure(n + "_" + name + "_p50", p50(*samples));
      report.figure(n + "_" + name + "_worst", bench::percentile(*samples, 100));
    }
    if (dirty == at_once) {
      report.target("pause with " + n + " dirty pages, ms (p50)", p50(s.pause), 5);
      report.target("fork() of as much memory, over the pause", p50(s.fork) / p50(s.pause), 1,
                    false);
    }
  }
  table.print();
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("pause", argc, argv, run); }
