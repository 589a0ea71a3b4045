// bench reading: the cost of loading a version by touching it.
//
// A snapshot of integers is opened by a new process each time, its files in the page cache, and
// read: from end to end; the same by a reader that processes the data for about as long as
// decompression takes; by two threads, a half each; a word of each of many 64 KiB chunks in random
// order. The peers, in the same run and alternating: the same without read-ahead (advise() with
// Advice::random), and a full copy in a plain file, mapped. The minimum of the rounds.
//
// And after all of it is loaded (prefetch()): words at random positions, each of which determines
// the next position; in pages of 4 KiB, in huge pages (RegionOptions::huge_pages), and in the
// mapped copy.
//
// And the second opening of a version whose decoded pages stay (VELLUM_KEEP_VERSIONS): opened and
// read as above by a new process, after another one has read it and has ended. Target: 1.5 times
// the mapped copy.
//
//   bench_reading [--json FILE] [--dir DIR] [--mib 256] [--rounds 5] [--engine automatic|...]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/copies.hpp"
#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

constexpr std::size_t kChunkBytes = 64u << 10;

using Bytes = std::span<const std::byte>;

std::uint64_t scan(Bytes bytes) { return bench::sum(bytes); }

std::uint64_t scan_backwards(Bytes bytes) {
  std::uint64_t total = 0;
  for (std::size_t end = bytes.size(); end != 0;) {
    const std::size_t begin = end - std::min(kChunkBytes, end);
    total += bench::sum(bytes.subspan(begin, end - begin));
    end = begin;
  }
  return total;
}

std::uint64_t scan_slowly(Bytes bytes) {
  constexpr int kPasses = 8;
  std::uint64_t total = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    const Bytes chunk = bytes.subspan(at, std::min(kChunkBytes, bytes.size() - at));
    for (int pass = 0; pass < kPasses; ++pass) total = total * 31 + bench::sum(chunk);
  }
  return total;
}

std::uint64_t scan_by_two(Bytes bytes) {
  std::uint64_t second = 0;
  std::thread other([&] { second = bench::sum(bytes.subspan(bytes.size() / 2)); });
  const std::uint64_t first = bench::sum(bytes.first(bytes.size() / 2));
  other.join();
  return first + second;
}

std::uint64_t read_random(Bytes bytes) {
  std::vector<std::size_t> chunks(bytes.size() / kChunkBytes);
  std::iota(chunks.begin(), chunks.end(), std::size_t{0});
  std::shuffle(chunks.begin(), chunks.end(), std::mt19937_64(3));
  std::uint64_t total = 0;
  for (const std::size_t chunk : chunks) {
    total += static_cast<std::uint64_t>(bytes[chunk * kChunkBytes]);
  }
  return total;
}

constexpr double kMaxKeptRatio = 1.5;

// The next position depends on the word read: no access can run ahead.
std::uint64_t follow(Bytes bytes) {
  constexpr int kSteps = 2'000'000;
  std::uint64_t at = 1;
  for (int i = 0; i < kSteps; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[at % (bytes.size() / 8) * 8], 8);
    at = (at ^ word) * 0x9E3779B97F4A7C15ULL;
    at ^= at >> 29;
  }
  return at;
}

using Read = std::uint64_t (*)(Bytes);

double ms_of(Read read, Bytes bytes) {
  const auto start = bench::Clock::now();
  volatile std::uint64_t total = read(bytes);
  (void)total;
  return bench::seconds_since(start) * 1e3;
}

double measure(const std::string& path, vellum::Engine engine, vellum::Advice advice, Read read) {
  return bench::in_child([&] {
    auto store = vellum::Store::open(path);
    vellum::RegionOptions options;
    options.engine = engine;
    const auto region = store.open_version("filled", options);
    region.advise(region.whole(), advice);
    return ms_of(read, {static_cast<const std::byte*>(region.data()), region.size_bytes()});
  });
}

// Opening included.
double measure_kept(const std::string& path, vellum::Engine engine, Read read) {
  return bench::in_child([&] {
    const auto start = bench::Clock::now();
    auto store = vellum::Store::open(path);
    vellum::RegionOptions options;
    options.engine = engine;
    const auto region = store.open_version("filled", options);
    ms_of(read, {static_cast<const std::byte*>(region.data()), region.size_bytes()});
    return bench::seconds_since(start) * 1e3;
  });
}

double measure_copy(const std::string& file, Read read) {
  return bench::in_child([&] {
    const bench::MappedCopy copy(file);
    return ms_of(read, copy.bytes());
  });
}

struct Followed {
  double prefetch_ms = 0, follow_ms = 0;
};

Followed measure_follow(const std::string& path, vellum::Engine engine, bool huge_pages) {
  return bench::in_child([&] {
    auto store = vellum::Store::open(path);
    vellum::RegionOptions options;
    options.engine = engine;
    options.huge_pages = huge_pages;
    const auto region = store.open_version("filled", options);
    const Bytes bytes{static_cast<const std::byte*>(region.data()), region.size_bytes()};
    Followed out;
    const auto start = bench::Clock::now();
    region.prefetch(region.whole());
    out.prefetch_ms = bench::seconds_since(start) * 1e3;
    out.follow_ms = ms_of(follow, bytes);
    return out;
  });
}

double follow_copy_ms(const std::string& file) {
  return bench::in_child([&] {
    const bench::MappedCopy copy(file);
    ms_of(scan, copy.bytes());  // loads all of it
    return ms_of(follow, copy.bytes());
  });
}

void compare_follow(const std::string& path, const std::string& copy, vellum::Engine engine,
                    std::size_t rounds, bench::Report& report) {
  Followed small{1e9, 1e9}, huge{1e9, 1e9};
  double plain = 1e9;
  const auto keep_least = [](Followed& least, const Followed& f) {
    least.prefetch_ms = std::min(least.prefetch_ms, f.prefetch_ms);
    least.follow_ms = std::min(least.follow_ms, f.follow_ms);
  };
  for (std::size_t i = 0; i < rounds; ++i) {
    keep_least(small, measure_follow(path, engine, false));
    keep_least(huge, measure_follow(path, engine, true));
    plain = std::min(plain, follow_copy_ms(copy));
  }
  bench::Table table({"following, ms", "prefetch()", "2 M steps", "small/huge", "copy"});
  table.row({"4 KiB", bench::fixed(small.prefetch_ms, 1), bench::fixed(small.follow_ms, 1), "",
             bench::fixed(plain, 1)});
  table.row({"2 MiB", bench::fixed(huge.prefetch_ms, 1), bench::fixed(huge.follow_ms, 1),
             bench::fixed(small.follow_ms / huge.follow_ms, 2), ""});
  table.print();
  report.figure("follow_ms", small.follow_ms);
  report.figure("follow_huge_ms", huge.follow_ms);
  report.figure("follow_copy_ms", plain);
  report.figure("prefetch_ms", small.prefetch_ms);
  report.figure("prefetch_huge_ms", huge.prefetch_ms);
}

// VELLUM_KEEP_VERSIONS for this process, in a directory of its own.
class KeepsVersions {
 public:
  explicit KeepsVersions(std::size_t bytes) {
    if (::mkdtemp(directory_) == nullptr) throw std::runtime_error("no directory in /dev/shm");
    ::setenv("VELLUM_SHARE_DIRECTORY", directory_, 1);
    ::setenv("VELLUM_KEEP_VERSIONS", std::to_string(bytes).c_str(), 1);
  }
  ~KeepsVersions() {
    ::unsetenv("VELLUM_KEEP_VERSIONS");
    ::unsetenv("VELLUM_SHARE_DIRECTORY");
    std::filesystem::remove_all(directory_);
  }
  KeepsVersions(const KeepsVersions&) = delete;
  KeepsVersions& operator=(const KeepsVersions&) = delete;

 private:
  char directory_[64] = "/dev/shm/bench-reading-XXXXXX";
};

void compare_kept(const std::string& path, const std::string& copy, std::size_t bytes,
                  vellum::Engine engine, std::size_t rounds, bench::Report& report) {
  const KeepsVersions keeps(2 * bytes);
  bench::Table table({"second opening, ms", "kept pages", "mapped copy", "kept/copy", "target"});
  for (const auto& [name, read] :
       {std::pair<const char*, Read>{"scan", scan}, {"random chunks", read_random}}) {
    measure_kept(path, engine, scan);
    double kept = 1e9, plain = 1e9;
    for (std::size_t i = 0; i < rounds; ++i) {
      kept = std::min(kept, measure_kept(path, engine, read));
      plain = std::min(plain, measure_copy(copy, read));
    }
    table.row({name, bench::fixed(kept, 1), bench::fixed(plain, 1), bench::fixed(kept / plain, 2),
               bench::fixed(kMaxKeptRatio, 1)});
    report.figure(fmt::format("kept_{}_ms", name), kept);
  }
  table.print();
}

void run(const bench::Options& options) {
  bench::prefer_this_process();
  const std::size_t bytes = options.number("mib", 256) << 20;
  const std::size_t rounds = options.number("rounds", 5);
  const auto engine = bench::engine_named(options.text("engine", "automatic"));
  const std::string path = options.scratch() + "/store";
  const std::string copy = options.scratch() + "/copy";
  {
    auto store = vellum::Store::create(path);
    auto region = store.create_region("main", bytes);
    bench::fill_with_integers({static_cast<std::byte*>(region.data()), bytes}, 1);
    region.snapshot("filled");
    store.export_file("filled", copy);
  }
  struct Way {
    const char* name;
    Read read;
  };
  constexpr Way kWays[] = {{"scan", scan},
                           {"backwards", scan_backwards},
                           {"slow scan", scan_slowly},
                           {"two threads", scan_by_two},
                           {"random chunks", read_random}};
  bench::Report report("reading");
  bench::Table table({"reading, ms", "as it is", "nothing ahead", "mapped copy",
                      "nothing ahead/as it is", "as it is/copy"});
  for (const Way& way : kWays) {
    double with = 1e9, without = 1e9, plain = 1e9;
    for (std::size_t i = 0; i < rounds; ++i) {
      with = std::min(with, measure(path, engine, vellum::Advice::normal, way.read));
      without = std::min(without, measure(path, engine, vellum::Advice::random, way.read));
      plain = std::min(plain, measure_copy(copy, way.read));
    }
    table.row({way.name, bench::fixed(with, 1), bench::fixed(without, 1), bench::fixed(plain, 1),
               bench::fixed(without / with, 2), bench::fixed(with / plain, 1)});
    report.figure(fmt::format("{}_ms", way.name), with);
    report.figure(fmt::format("{}_nothing_ahead_ms", way.name), without);
    report.figure(fmt::format("{}_copy_ms", way.name), plain);
  }
  table.print();
  compare_follow(path, copy, engine, rounds, report);
  compare_kept(path, copy, bytes, engine, rounds, report);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("reading", argc, argv, run); }
