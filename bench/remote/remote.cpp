// bench_remote: the separate programs of bench/remote/table.py and costs.py: creates stores, changes versions,
// and reads versions at a remote, each in a new process.
//
//   bench_remote make STORE MIB FILE    a region of integers, snapshot "base"; FILE: the same bytes
//   bench_remote words STORE            a word of 1 % of its pages changes; snapshot "words"
//   bench_remote elements STORE         1 % of its elements change; snapshot "elements"
//   bench_remote names STORE COUNT      COUNT snapshots of one small region
//   bench_remote commit STORE COUNT PAGES MS
//                                       COUNT commits of PAGES pages of new content, MS apart; then
//                                       "committed BYTES", and waits for the end of its input
//   bench_remote read URL VERSION first "first SECONDS": from the start to its first byte
//   bench_remote read URL VERSION all   the same, and "rest SECONDS" of reading it in order
//   bench_remote read URL VERSION KIB   5 % of it, in parts of KIB, in random order
//   bench_remote batch URL VERSION KIB  the same, requested in one call before
//   bench_remote use URL VERSION KIB    the same as read, with the version's working set, which it
//                                       records where it can
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <thread>
#include <vellum/store.hpp>

#include "lib/open_version.hpp"
#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

constexpr std::uint64_t kPartPercent = 5;

using Arguments = std::vector<std::string>;

std::uint64_t number(const std::string& text) { return std::stoull(text); }

std::span<std::byte> bytes_of(vellum::Region& region) {
  return {static_cast<std::byte*>(region.data()), region.size_bytes()};
}

void make(const Arguments& a) {
  auto store = vellum::Store::create(a.at(0));
  auto region = store.create_region("main", number(a.at(1)) << 20);
  const auto bytes = bytes_of(region);
  bench::fill_with_integers(bytes, 1);
  region.snapshot("base");
  std::ofstream file(a.at(2), std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error(a.at(2) + " cannot be written");
}

// Calls change(bytes), and takes a snapshot. Prints how long that took.
template <typename Change>
void step(const std::string& path, const std::string& name, const Change& change) {
  auto store = vellum::Store::open(path);
  auto region = store.open_region("main");
  change(bytes_of(region));
  const auto start = bench::Clock::now();
  region.snapshot(name);
  fmt::print("snapshot {:.6f}\n", bench::seconds_since(start));
}

void change_words(std::span<std::byte> bytes) {
  std::mt19937_64 random(7);
  const std::uint64_t pages = bytes.size() / bench::kPageBytes;
  bench::store_into(bytes.data(), bench::pick_pages(random, pages, pages / 100), random);
}

void change_elements(std::span<std::byte> bytes) {
  std::mt19937_64 random(8);
  const std::uint64_t elements = bytes.size() / 8;
  for (std::uint64_t i = 0; i < elements / 100; ++i) {
    bench::fill_with_integers(bytes.subspan(random() % elements * 8, 8), random());
  }
}

void names(const Arguments& a) {
  auto store = vellum::Store::create(a.at(0));
  auto region = store.create_region("main", 1u << 20);
  for (std::uint64_t i = 0; i < number(a.at(1)); ++i) {
    bytes_of(region)[i % 4096] = std::byte{1};
    region.snapshot(fmt::format("s{}", i));
  }
}

void commit(const Arguments& a) {
  auto store = vellum::Store::open(a.at(0));
  auto region = store.open_region("main");
  const auto bytes = bytes_of(region);
  const std::uint64_t part_bytes = number(a.at(2)) * bench::kPageBytes;
  std::mt19937_64 random(std::random_device{}());
  std::uint64_t written_bytes = 0;
  for (std::uint64_t i = 0; i < number(a.at(1)); ++i) {
    const auto part = bytes.subspan(i * part_bytes % (bytes.size() - part_bytes), part_bytes);
    for (std::size_t at = 0; at < part.size(); at += 8) {
      const std::uint64_t word = random();
      std::memcpy(part.data() + at, &word, sizeof word);
    }
    written_bytes += part_bytes;
    region.commit();
    std::this_thread::sleep_for(std::chrono::milliseconds(number(a.at(3))));
  }
  fmt::print("committed {}\n", written_bytes);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

std::vector<std::uint64_t> some_parts(std::uint64_t count) {
  std::mt19937_64 random(11);
  return bench::pick_pages(random, count, std::max<std::uint64_t>(1, count * kPartPercent / 100));
}

using Prepare = std::function<void(const vellum::Region& region, std::uint64_t part_bytes,
                                   const std::vector<std::uint64_t>& parts)>;

void read(const Arguments& a, const vellum::RegionOptions& options = {},
          const Prepare& prepare = nullptr) {
  const auto start = bench::Clock::now();
  const bench::OpenVersion version(a.at(0), a.at(1), options);
  const auto bytes = version.bytes();
  const bool whole = a.at(2) == "all" || a.at(2) == "first";
  const std::uint64_t part_bytes = whole ? bytes.size() : number(a.at(2)) << 10;
  const auto parts = whole ? std::vector<std::uint64_t>{0} : some_parts(bytes.size() / part_bytes);
  if (prepare) prepare(version.region, part_bytes, parts);
  volatile std::byte first = bytes[parts.front() * part_bytes];
  (void)first;
  const double first_s = bench::seconds_since(start);
  fmt::print("first {:.6f}\n", first_s);
  if (a.at(2) == "first") return;
  std::uint64_t sum = 0;
  for (const std::uint64_t part : parts) {
    sum += bench::sum(bytes.subspan(part * part_bytes, part_bytes));
  }
  fmt::print("rest {:.6f}\nbytes {}\nsum {}\n", bench::seconds_since(start) - first_s,
             parts.size() * part_bytes, sum);
}

void batch(const Arguments& a) {
  read(a, {}, [](const auto& region, std::uint64_t part_bytes, const auto& parts) {
    std::vector<vellum::ByteRange> ranges;
    for (const std::uint64_t part : parts) ranges.push_back({part * part_bytes, part_bytes});
    region.prefetch(ranges);
  });
}

void use(const Arguments& a) {
  vellum::RegionOptions options;
  options.working_set = true;
  read(a, options);
}

void run(const std::string& what, const Arguments& a) {
  if (what == "make") return make(a);
  if (what == "words") return step(a.at(0), what, change_words);
  if (what == "elements") return step(a.at(0), what, change_elements);
  if (what == "names") return names(a);
  if (what == "commit") return commit(a);
  if (what == "read") return read(a);
  if (what == "batch") return batch(a);
  if (what == "use") return use(a);
  throw std::runtime_error("no '" + what + "'");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "", Arguments(argv + std::min(argc, 2), argv + argc));
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_remote: {}\n", e.what());
    return 1;
  }
}
