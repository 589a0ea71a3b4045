// bench snapshot: the cost of keeping a version, and of opening an old one.
//
// A region full of integers; 20 rounds: 1 % of its pages, picked at random, dirtied by one 8-byte
// store each, a durable snapshot after each; the same with 26 pages. Then a new process opens the
// 10th version and reads it from end to end: cold (page cache dropped), warm (the store's files in
// the page cache), and once more through the same mapping (resident). The peers, in the same run:
// the usual way, a mapped file that is copied whole for each version (copy + fdatasync), and one of
// these copies opened by mmap.
//
//   bench_snapshot [--json FILE] [--dir DIR] [--mib 1024] [--rounds 20] [--copies 3]
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/copies.hpp"
#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

struct Round {
  double seconds = 0, update_seconds = 0, bytes = 0;
};

struct Scan {
  double open_ms = 0, first_s = 0, again_s = 0;
};

// Runs in a separate process, without leftovers of the writing one.
Scan scan_version(const std::string& store_path, const std::string& version) {
  Scan out;
  auto start = bench::Clock::now();
  auto store = vellum::Store::open(store_path);
  auto region = store.open_version(version);
  volatile std::byte first = *static_cast<const std::byte*>(region.data());
  (void)first;
  out.open_ms = bench::seconds_since(start) * 1e3;
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(region.data()),
                                         region.size_bytes());
  start = bench::Clock::now();
  volatile std::uint64_t total = bench::sum(bytes);
  out.first_s = bench::seconds_since(start);
  start = bench::Clock::now();
  total = bench::sum(bytes);
  out.again_s = bench::seconds_since(start);
  (void)total;
  return out;
}

Scan scan_copy(const std::string& file) {
  Scan out;
  auto start = bench::Clock::now();
  const bench::MappedCopy copy(file);
  volatile std::byte first = copy.bytes().front();
  (void)first;
  out.open_ms = bench::seconds_since(start) * 1e3;
  start = bench::Clock::now();
  volatile std::uint64_t total = bench::sum(copy.bytes());
  out.first_s = bench::seconds_since(start);
  start = bench::Clock::now();
  total = bench::sum(copy.bytes());
  out.again_s = bench::seconds_since(start);
  (void)total;
  return out;
}

// Needs root; otherwise the cold figures are warm, which the output states.
bool drop_page_cache() {
  sync();
  std::ofstream out("/proc/sys/vm/drop_caches");
  out << "3\n";
  return static_cast<bool>(out.flush());
}

std::vector<Round> vellum_rounds(vellum::Store& store, vellum::Region& region,
                                 const std::string& prefix, std::size_t pages, std::size_t rounds) {
  std::mt19937_64 random(pages);
  auto* const base = static_cast<std::byte*>(region.data());
  std::vector<Round> out;
  double stored = static_cast<double>(store.stat().stored_bytes);
  for (std::size_t i = 1; i <= rounds; ++i) {
    const auto picked = bench::pick_pages(random, region.size_bytes() / bench::kPageBytes, pages);
    Round round;
    auto start = bench::Clock::now();
    bench::store_into(base, picked, random);
    round.update_seconds = bench::seconds_since(start);
    start = bench::Clock::now();
    region.snapshot(prefix + std::to_string(i));
    round.seconds = bench::seconds_since(start);
    const auto now = static_cast<double>(store.stat().stored_bytes);
    round.bytes = now - stored;
    stored = now;
    out.push_back(round);
  }
  return out;
}

std::vector<Round> copy_rounds(const std::string& directory, std::size_t bytes, std::size_t pages,
                               std::size_t rounds) {
  const std::string live = directory + "/live";
  const int fd = open(live.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bench::check(fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0, "open");
  void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  bench::check(map != MAP_FAILED, "mmap");
  auto* const base = static_cast<std::byte*>(map);
  bench::fill_with_integers({base, bytes}, 1);
  bench::check(fdatasync(fd) == 0, "fdatasync");
  std::mt19937_64 random(pages);
  std::vector<Round> out;
  for (std::size_t i = 1; i <= rounds; ++i) {
    const auto picked = bench::pick_pages(random, bytes / bench::kPageBytes, pages);
    Round round;
    auto start = bench::Clock::now();
    bench::store_into(base, picked, random);
    round.update_seconds = bench::seconds_since(start);
    start = bench::Clock::now();
    const std::string copy = directory + "/copy" + std::to_string(i);
    const int to = open(copy.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bench::check(to >= 0, "open");
    for (std::size_t at = 0; at < bytes;) {
      const ssize_t n = pwrite(to, base + at, std::min<std::size_t>(bytes - at, 8u << 20),
                               static_cast<off_t>(at));
      bench::check(n > 0, "pwrite");
      at += static_cast<std::size_t>(n);
    }
    bench::check(fdatasync(to) == 0, "fdatasync");
    round.seconds = bench::seconds_since(start);
    struct stat info{};
    bench::check(fstat(to, &info) == 0, "fstat");
    round.bytes = static_cast<double>(info.st_blocks) * 512;
    close(to);
    out.push_back(round);
  }
  munmap(map, bytes);
  close(fd);
  return out;
}

double largest(const std::vector<Round>& rounds, double Round::* field) {
  double value = 0;
  for (const auto& round : rounds) value = std::max(value, round.*field);
  return value;
}

double mean(const std::vector<Round>& rounds, double Round::* field) {
  double total = 0;
  for (const auto& round : rounds) total += round.*field;
  return total / static_cast<double>(rounds.size());
}

void run(const bench::Options& options) {
  bench::prefer_this_process();
  const std::size_t bytes = options.number("mib", 1024) << 20;
  const std::size_t rounds = options.number("rounds", 20);
  const std::size_t one_percent = bytes / bench::kPageBytes / 100;
  const std::string store_path = options.scratch() + "/store";
  auto store = vellum::Store::create(store_path);
  std::vector<Round> large, small;
  {
    auto region = store.create_region("main", bytes);
    bench::fill_with_integers({static_cast<std::byte*>(region.data()), bytes}, 1);
    region.snapshot("filled");
    large = vellum_rounds(store, region, "percent-", one_percent, rounds);
    small = vellum_rounds(store, region, "pages26-", 26, rounds);
  }
  const auto copies =
      copy_rounds(options.scratch(), bytes, one_percent, options.number("copies", 3));

  bench::Table table({"a snapshot of", "seconds p50", "max", "bytes mean", "max", "update s",
                      "full copy s", "bytes", "time ratio", "bytes ratio"});
  const double copy_s = bench::median_of(copies, &Round::seconds),
               copy_bytes = mean(copies, &Round::bytes);
  for (const auto& [name, data] : {std::pair{fmt::format("{} pages", one_percent), &large},
                                   {std::string("26 pages"), &small}}) {
    table.row({name, bench::fixed(bench::median_of(*data, &Round::seconds), 4),
               bench::fixed(largest(*data, &Round::seconds), 4),
               bench::human_bytes(mean(*data, &Round::bytes)),
               bench::human_bytes(largest(*data, &Round::bytes)),
               bench::fixed(bench::median_of(*data, &Round::update_seconds), 4),
               bench::fixed(copy_s, 2), bench::human_bytes(copy_bytes),
               fmt::format("1/{:.0f}", copy_s / bench::median_of(*data, &Round::seconds)),
               fmt::format("1/{:.0f}", copy_bytes / mean(*data, &Round::bytes))});
  }
  table.print();

  const std::string version = "percent-" + std::to_string(std::min<std::size_t>(10, rounds));
  const std::string copy = options.scratch() + "/copy1";
  const bool dropped = drop_page_cache();
  if (!dropped) fmt::print("\n(the page cache could not be dropped: 'cold' is warm)\n");
  const Scan cold = bench::in_child([&] { return scan_version(store_path, version); });
  const Scan warm = bench::in_child([&] { return scan_version(store_path, version); });
  drop_page_cache();
  const Scan copy_cold = bench::in_child([&] { return scan_copy(copy); });
  const Scan copy_warm = bench::in_child([&] { return scan_copy(copy); });
  fmt::print("\n");
  bench::Table scans({"open " + version, "open ms", "scan s", "scan again s", "full copy: open ms",
                      "scan s", "scan again s"});
  scans.row({"cold", bench::fixed(cold.open_ms, 2), bench::fixed(cold.first_s, 3),
             bench::fixed(cold.again_s, 3), bench::fixed(copy_cold.open_ms, 2),
             bench::fixed(copy_cold.first_s, 3), bench::fixed(copy_cold.again_s, 3)});
  scans.row({"page cache warm", bench::fixed(warm.open_ms, 2), bench::fixed(warm.first_s, 3),
             bench::fixed(warm.again_s, 3), bench::fixed(copy_warm.open_ms, 2),
             bench::fixed(copy_warm.first_s, 3), bench::fixed(copy_warm.again_s, 3)});
  scans.print();

  bench::Report report("snapshot");
  report.figure("percent_seconds_p50", bench::median_of(large, &Round::seconds));
  report.figure("percent_seconds_max", largest(large, &Round::seconds));
  report.figure("percent_bytes_mean", mean(large, &Round::bytes));
  report.figure("pages26_seconds_p50", bench::median_of(small, &Round::seconds));
  report.figure("pages26_bytes_mean", mean(small, &Round::bytes));
  report.figure("copy_seconds_p50", copy_s);
  report.figure("copy_bytes", copy_bytes);
  report.figure("cold_open_ms", cold.open_ms);
  report.figure("cold_scan_s", cold.first_s);
  report.figure("warm_open_ms", warm.open_ms);
  report.figure("warm_first_scan_s", warm.first_s);
  report.figure("warm_scan_s", warm.again_s);
  report.figure("copy_cold_scan_s", copy_cold.first_s);
  report.figure("copy_warm_scan_s", copy_warm.first_s);
  report.target("snapshot of 1 % of the pages, s p50", bench::median_of(large, &Round::seconds),
                0.06);
  report.target("snapshot of 1 % of the pages, MiB mean", mean(large, &Round::bytes) / (1 << 20),
                0.3);
  report.target("snapshot of 26 pages, ms p50", bench::median_of(small, &Round::seconds) * 1e3, 5);
  report.target("open of the 10th version, cold, ms", cold.open_ms, 5);
  report.target("open of the 10th version, warm, ms", warm.open_ms, 5);
  report.target("warm scan (pages present), s", warm.again_s, 0.2);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("snapshot", argc, argv, run); }
