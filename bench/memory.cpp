// bench memory: the memory of a region in addition to its data.
//
// Three programs, each a separate process:
// - all of a region is written and committed, followed by a second without activity;
// - data is loaded: each twentieth of the region is written in order and committed;
// - the same under a memory limit of 0.6 of the region; then no committed page should go to the
//   spill file.
// The peer of the first two: anonymous memory that is written in the same way; each twentieth is
// also appended to a plain file and flushed. Both write the same integers.
//
// Memory is the process's anonymous memory (RssAnon) and the blocks of its memfds, sampled every
// 5 ms. (Its resident size would count a memfd's page once for each mapping, and not at all without
// one.)
//
//   bench_memory [--json FILE] [--dir DIR] [--mib 1024] [--rounds 3]
//                [--engine automatic|uffd|sigsegv]
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

using namespace std::chrono_literals;
constexpr std::size_t kParts = 20;

std::uint64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(line.find(':') + 1)) << 10;
  }
  throw std::runtime_error("/proc/self/status has no RssAnon");
}

// Of all memfds of the process, each once.
std::uint64_t memfd_bytes() {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (!std::filesystem::read_symlink(entry, gone).string().starts_with("/memfd:")) continue;
    struct stat status{};
    if (stat(entry.path().c_str(), &status) == 0)
      bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return bytes;
}

// The growth since the start of the process.
class Memory {
 public:
  Memory() : thread_([this] { watch(); }) {}
  ~Memory() {
    stop_ = true;
    thread_.join();
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::uint64_t now_bytes() const {
    const std::uint64_t now = anonymous_bytes() + memfd_bytes();
    return now > before_ ? now - before_ : 0;
  }
  std::uint64_t peak_bytes() const { return peak_; }

 private:
  void watch() {
    while (!stop_) {
      peak_ = std::max(peak_.load(), now_bytes());
      std::this_thread::sleep_for(5ms);
    }
  }
  const std::uint64_t before_ = anonymous_bytes();
  std::atomic<std::uint64_t> peak_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct Taken {
  double seconds = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t rest_bytes = 0;     // a second later
  std::uint64_t spilled_bytes = 0;  // ever written to the spill file
};

// Plain memory, written in parts; each part is appended to a file and flushed.
Taken in_anonymous_memory(const std::string& file, std::size_t bytes, std::size_t parts) {
  const Memory memory;
  void* const map =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bench::check(map != MAP_FAILED, "mmap");
  madvise(map, bytes, MADV_NOHUGEPAGE);
  const int fd = open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  bench::check(fd >= 0, "open");
  Taken out;
  const auto start = bench::Clock::now();
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = bytes / parts * part;
    auto* const at = static_cast<std::byte*>(map) + begin;
    bench::fill_with_integers({at, bytes / parts}, part);
    for (std::size_t done = 0; done < bytes / parts;) {
      const ssize_t n = write(fd, at + done, bytes / parts - done);
      bench::check(n > 0, "write");
      done += static_cast<std::size_t>(n);
    }
    bench::check(fdatasync(fd) == 0, "fdatasync");
  }
  out.seconds = bench::seconds_since(start);
  std::this_thread::sleep_for(1s);
  out.rest_bytes = memory.now_bytes();
  out.peak_bytes = memory.peak_bytes();
  close(fd);
  munmap(map, bytes);
  return out;
}

Taken in_region(const std::string& path, std::size_t bytes, std::size_t parts,
                const vellum::RegionOptions& options) {
  const Memory memory;
  auto store = vellum::Store::create(path);
  auto region = store.create_region("main", bytes, options);
  auto* const data = static_cast<std::byte*>(region.data());
  Taken out;
  const auto start = bench::Clock::now();
  for (std::size_t part = 0; part < parts; ++part) {
    bench::fill_with_integers({data + bytes / parts * part, bytes / parts}, part);
    region.commit();
  }
  out.seconds = bench::seconds_since(start);
  std::this_thread::sleep_for(1s);
  out.rest_bytes = memory.now_bytes();
  out.peak_bytes = memory.peak_bytes();
  out.spilled_bytes = region.memory_use().spill_written_bytes;
  return out;
}

class Bench {
 public:
  explicit Bench(const bench::Options& options)
      : directory_(options.scratch()),
        bytes_((options.number("mib", 1024) << 20) / kParts / bench::kPageBytes * kParts *
               bench::kPageBytes),
        rounds_(options.number("rounds", 3)) {
    region_options_.engine = bench::engine_named(options.text("engine", "automatic"));
  }

  void run(bench::Report& report) {
    bench::Table table({"of the region's bytes", "at rest", "peak", "spilled", "seconds"});
    const auto plain_once = anonymous(1), once = region(1, 0);
    const auto plain_parts = anonymous(kParts), parts = region(kParts, 0);
    const auto limited = region(kParts, bytes_ / 5 * 3);
    add("written at once, committed", once, table, report);
    add("the same, anonymous memory and a file", plain_once, table, report);
    add("loaded, a commit each 5 %", parts, table, report);
    add("the same, anonymous memory and a file", plain_parts, table, report);
    add("loaded under a limit of 0.6", limited, table, report);
    table.print();
    report.target("all written and committed, after a second / region", share(once.rest_bytes),
                  1.15);
    report.target("loaded with a commit each 5 %, peak / region", share(parts.peak_bytes), 1.25);
    report.target("loaded under a limit of 0.6: spilled / region", share(limited.spilled_bytes),
                  0.01);
  }

 private:
  double share(std::uint64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(bytes_);
  }

  // The median of each figure.
  template <typename Measure>
  Taken median(Measure measure) const {
    std::vector<Taken> all;
    for (std::uint64_t round = 0; round < rounds_; ++round) all.push_back(bench::in_child(measure));
    Taken out;
    out.seconds = bench::median_of(all, &Taken::seconds);
    const auto of = [&](auto member) {
      return static_cast<std::uint64_t>(bench::median_of(
          all, [member](const Taken& taken) { return static_cast<double>(taken.*member); }));
    };
    out.peak_bytes = of(&Taken::peak_bytes);
    out.rest_bytes = of(&Taken::rest_bytes);
    out.spilled_bytes = of(&Taken::spilled_bytes);
    return out;
  }

  Taken anonymous(std::size_t parts) const {
    return median([&] { return in_anonymous_memory(directory_ + "/file", bytes_, parts); });
  }

  Taken region(std::size_t parts, std::uint64_t limit_bytes) const {
    auto options = region_options_;
    options.memory_limit_bytes = limit_bytes;
    return median([&] {
      const std::string path = directory_ + "/store";
      std::filesystem::remove_all(path);
      return in_region(path, bytes_, parts, options);
    });
  }

  void add(const std::string& name, const Taken& taken, bench::Table& table,
           bench::Report& report) const {
    table.row({name, bench::fixed(share(taken.rest_bytes), 3),
               bench::fixed(share(taken.peak_bytes), 3),
               bench::human_bytes(static_cast<double>(taken.spilled_bytes)),
               bench::fixed(taken.seconds, 2)});
    report.figure(name + ", at rest, share", share(taken.rest_bytes));
    report.figure(name + ", peak, share", share(taken.peak_bytes));
    report.figure(name + ", seconds", taken.seconds);
  }

  std::string directory_;
  std::size_t bytes_;
  std::uint64_t rounds_;
  vellum::RegionOptions region_options_;
};

void run(const bench::Options& options) {
  bench::Report report("memory");
  fmt::print("{} MiB\n\n", options.number("mib", 1024));
  Bench(options).run(report);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("memory", argc, argv, run); }
