// bench commit: the cost of one durable commit of a few scattered 8-byte stores in a resident
// region.
//
// The peers, in the same run and alternating: the floor (the bytes that the commit wrote, appended
// to a preallocated file, and fdatasync) and plain MAP_SHARED with msync(MS_SYNC), which is neither
// atomic nor versioned.
//
// Before that, many commits in a row without a pause, for the slowest of them: checkpoints have to
// keep up with them. The floor is measured after each hundred.
//
//   bench_commit [--json FILE] [--dir DIR] [--mib 1024] [--rounds 200] [--commits 10000]
//                [--engine automatic|uffd|sigsegv|mapped]
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vellum/store.hpp>

#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

double us(std::chrono::duration<double, std::micro> time) { return time.count(); }

// A file whose blocks are all written: writing to it changes no file system metadata.
class Floor {
 public:
  Floor(const std::string& path, std::size_t bytes) : bytes_(bytes), source_(bytes, std::byte{1}) {
    fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bench::check(fd_ >= 0, "open");
    bench::check(pwrite(fd_, source_.data(), bytes, 0) == static_cast<ssize_t>(bytes), "pwrite");
    bench::check(fdatasync(fd_) == 0, "fdatasync");
  }
  ~Floor() { close(fd_); }
  double append_us(std::size_t bytes) {
    bytes = std::min(bytes, bytes_);
    if (at_ + bytes > bytes_) at_ = 0;
    const auto start = bench::Clock::now();
    bench::check(
        pwrite(fd_, source_.data(), bytes, static_cast<off_t>(at_)) == static_cast<ssize_t>(bytes),
        "pwrite");
    bench::check(fdatasync(fd_) == 0, "fdatasync");
    at_ += bytes;
    return bench::seconds_since(start) * 1e6;
  }

 private:
  std::size_t bytes_, at_ = 0;
  std::vector<std::byte> source_;
  int fd_ = -1;
};

class MappedFile {
 public:
  MappedFile(const std::string& path, std::size_t bytes) : bytes_(bytes) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bench::check(fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0, "open");
    void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    bench::check(map != MAP_FAILED, "mmap");
    data_ = static_cast<std::byte*>(map);
    bench::fill_with_integers({data_, bytes}, 1);
    bench::check(msync(data_, bytes_, MS_SYNC) == 0, "msync");
  }
  ~MappedFile() { munmap(data_, bytes_); }
  std::byte* data() { return data_; }
  void sync() { bench::check(msync(data_, bytes_, MS_SYNC) == 0, "msync"); }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

struct Samples {
  std::vector<double> update, commit, both, scan, encode, floor, msync, bytes;
};

Samples measure(vellum::Region& region, Floor& floor, MappedFile& mapped, std::size_t stores,
                std::size_t rounds) {
  std::mt19937_64 random(stores);
  auto* const base = static_cast<std::byte*>(region.data());
  const std::uint64_t pages = region.size_bytes() / bench::kPageBytes;
  Samples out;
  constexpr std::size_t kWarmUp = 10;
  for (std::size_t i = 0; i < rounds + kWarmUp; ++i) {
    const auto picked = bench::pick_pages(random, pages, stores);
    const auto start = bench::Clock::now();
    bench::store_into(base, picked, random);
    const double update_us = bench::seconds_since(start) * 1e6;
    const auto report = region.commit();
    const double both_us = bench::seconds_since(start) * 1e6;
    const double floor_us = floor.append_us(report.bytes_written);
    double msync_us = -1;
    if (i >= kWarmUp && (i - kWarmUp) % 4 == 0) {  // expensive, and steady: every fourth round
      const auto begin = bench::Clock::now();
      bench::store_into(mapped.data(), picked, random);
      mapped.sync();
      msync_us = bench::seconds_since(begin) * 1e6;
    }
    if (i < kWarmUp) continue;
    out.update.push_back(update_us);
    out.commit.push_back(both_us - update_us);
    out.both.push_back(both_us);
    out.scan.push_back(us(report.scan_time));
    out.encode.push_back(us(report.encode_time));
    out.bytes.push_back(static_cast<double>(report.bytes_written));
    out.floor.push_back(floor_us);
    if (msync_us >= 0) out.msync.push_back(msync_us);
  }
  return out;
}

// Many commits without a pause.
void measure_tail(vellum::Region& region, Floor& floor, std::size_t stores, std::size_t commits,
                  bench::Table& table, bench::Report& report) {
  std::mt19937_64 random(stores + 1);
  auto* const base = static_cast<std::byte*>(region.data());
  const std::uint64_t pages = region.size_bytes() / bench::kPageBytes;
  std::vector<double> commit, floors;
  std::uint64_t bytes = 0;
  double seconds = 0;
  for (std::size_t i = 0; i < commits; ++i) {
    bench::store_into(base, bench::pick_pages(random, pages, stores), random);
    const auto start = bench::Clock::now();
    const auto made = region.commit();
    commit.push_back(bench::seconds_since(start) * 1e6);
    seconds += commit.back() / 1e6;
    bytes += made.bytes_written;
    if (i % 100 == 0) floors.push_back(floor.append_us(made.bytes_written));
  }
  const auto p = [&](double q) { return bench::percentile(commit, q); };
  const double p50 = p(50), p99 = p(99);
  table.row({std::to_string(stores), std::to_string(commits), bench::fixed(p50, 0),
             bench::fixed(p(90), 0), bench::fixed(p99, 0), bench::fixed(p(99.9), 0),
             bench::fixed(p(100), 0), bench::fixed(seconds, 1),
             bench::human_bytes(static_cast<double>(bytes)),
             bench::fixed(bench::percentile(floors, 50), 0),
             bench::fixed(bench::percentile(floors, 99), 0)});
  for (const double q : {50.0, 99.0, 99.9, 100.0}) {
    report.figure(fmt::format("tail_{}_p{}", stores, q), p(q));
  }
  report.target(fmt::format("{} commits of {} stores, p99 / p50", commits, stores), p99 / p50, 3);
}

vellum::Region filled_region(vellum::Store& store, std::size_t bytes,
                             const bench::Options& options) {
  vellum::RegionOptions region_options;
  region_options.engine = bench::engine_named(options.text("engine", "automatic"));
  auto region = store.create_region("main", bytes, region_options);
  bench::fill_with_integers({static_cast<std::byte*>(region.data()), bytes}, 1);
  region.commit("filled");
  return region;
}

// With the default scheduling of programs: real-time threads on all processors would delay the
// kernel's own threads, and lose 50 ms of each second themselves (sched(7), sched_rt_runtime_us).
void measure_tails(const bench::Options& options, bench::Report& report) {
  const std::size_t commits = options.number("commits", 10'000);
  if (commits == 0) return;
  auto store = vellum::Store::create(options.scratch() + "/tails");
  auto region = filled_region(store, options.number("mib", 1024) << 20, options);
  Floor floor(options.scratch() + "/tails_floor", 64u << 20);
  bench::Table table({"8-byte stores", "commits", "p50", "p90", "p99", "p99.9", "slowest", "s",
                      "bytes", "floor p50", "floor p99"});
  for (const std::size_t stores : {1U, 64U, 4096U}) {
    measure_tail(region, floor, stores, commits, table, report);
  }
  fmt::print("commits without a pause, microseconds\n\n");
  table.print();
  fmt::print("\n");
}

void run(const bench::Options& options) {
  bench::Report report("commit");
  measure_tails(options, report);

  bench::prefer_this_process();
  const std::size_t bytes = options.number("mib", 1024) << 20;
  const std::size_t rounds = std::max<std::size_t>(options.number("rounds", 200), 4);
  auto store = vellum::Store::create(options.scratch() + "/store");
  auto region = filled_region(store, bytes, options);
  Floor floor(options.scratch() + "/floor", 64u << 20);
  MappedFile mapped(options.scratch() + "/mapped", bytes);

  fmt::print("{} MiB resident, engine {}, {} rounds; microseconds, p50 / p99\n\n", bytes >> 20,
             vellum::engine_name(region.engine()), rounds);
  bench::Table table({"8-byte stores", "update", "commit", "(scan", "encode)", "update+commit",
                      "bytes", "floor", "commit/floor", "msync", "msync/(u+c)"});
  const double scan_allowance_us = 400.0 * static_cast<double>(bytes) / (1 << 30);
  for (const std::size_t stores : {1U, 64U, 4096U}) {
    const auto s = measure(region, floor, mapped, stores, stores > 1000 ? rounds / 4 : rounds);
    const auto p = [](const std::vector<double>& v, double q) { return bench::percentile(v, q); };
    const auto both = [&](const std::vector<double>& v) {
      return fmt::format("{:.0f} / {:.0f}", p(v, 50), p(v, 99));
    };
    table.row({std::to_string(stores), both(s.update), both(s.commit),
               bench::fixed(p(s.scan, 50), 0), bench::fixed(p(s.encode, 50), 0), both(s.both),
               bench::fixed(p(s.bytes, 50), 0), both(s.floor),
               bench::fixed(p(s.commit, 50) / p(s.floor, 50), 2), both(s.msync),
               bench::fixed(p(s.msync, 50) / p(s.both, 50), 1)});
    const std::string n = std::to_string(stores);
    for (const auto& [name, samples] : {std::pair{"update", &s.update},
                                        {"commit", &s.commit},
                                        {"both", &s.both},
                                        {"scan", &s.scan},
                                        {"encode", &s.encode},
                                        {"floor", &s.floor},
                                        {"msync", &s.msync},
                                        {"bytes", &s.bytes}}) {
      report.figure(fmt::format("{}_{}_p50", name, n), p(*samples, 50));
      report.figure(fmt::format("{}_{}_p99", name, n), p(*samples, 99));
    }
    report.target(fmt::format("commit of {} stores, us p50 (2 floors + scan)", n), p(s.commit, 50),
                  2 * p(s.floor, 50) + scan_allowance_us);
    if (stores == 64)
      report.target("msync / (update+commit) at 64 stores", p(s.msync, 50) / p(s.both, 50), 10,
                    false);
  }
  table.print();

  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("commit", argc, argv, run); }
