// bench_growth: the separate programs of bench/growth/table.py: creates a store of many versions, and
// uses it as a program does, each in a new process.
//
//   bench_growth make STORE COUNT   a region of 1 MiB, full; COUNT snapshots v0, v1, ..., before each of
//                                   which up to 64 words get other content
//   bench_growth open STORE         "open SECONDS": from the start to the first byte of the branch
//   bench_growth commit STORE       the same, then "commit SECONDS": one changed page, durable
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>
#include <vellum/store.hpp>

#include "lib/report.hpp"

namespace {

constexpr std::uint64_t kRegionBytes = 1u << 20;

using Arguments = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::size_t kWords = kRegionBytes / sizeof(std::uint64_t);

// Most words are small numbers, some are arbitrary.
void fill(vellum::Region& region, std::size_t at, std::size_t count, std::mt19937_64& random) {
  auto* const words = static_cast<std::uint64_t*>(region.data());
  for (std::size_t i = 0; i < count; ++i)
    words[at + i] = random() % 4 == 0 ? random() : random() % 1000;
}

void change(vellum::Region& region, std::mt19937_64& random) {
  const std::size_t count = 1 + random() % 64;
  fill(region, random() % (kWords - count), count, random);
}

void make(const Arguments& a) {
  auto store = vellum::Store::create(a.at(0));
  auto region = store.create_region("main", kRegionBytes);
  std::mt19937_64 random(1);
  fill(region, 0, kWords, random);
  const std::uint64_t count = std::stoull(a.at(1));
  for (std::uint64_t i = 0; i < count; ++i) {
    change(region, random);
    region.snapshot(fmt::format("v{}", i));
  }
}

vellum::Region opened(vellum::Store& store, Clock::time_point start) {
  vellum::Region region = store.open_region("main");
  volatile std::uint64_t first = 0;
  std::memcpy(const_cast<std::uint64_t*>(&first), region.data(), sizeof first);
  fmt::print("open {:.6f}\n", seconds_since(start));
  return region;
}

void open(const Arguments& a, Clock::time_point start) {
  auto store = vellum::Store::open(a.at(0));
  opened(store, start);
}

void commit(const Arguments& a, Clock::time_point start) {
  auto store = vellum::Store::open(a.at(0));
  auto region = opened(store, start);
  std::mt19937_64 random(std::random_device{}());
  change(region, random);
  const auto before = Clock::now();
  region.commit();
  fmt::print("commit {:.6f}\n", seconds_since(before));
}

void run(const std::string& what, const Arguments& arguments, Clock::time_point start) {
  if (what == "make") return make(arguments);
  if (what == "open") return open(arguments, start);
  if (what == "commit") return commit(arguments, start);
  throw std::invalid_argument("unknown program '" + what + "'");
}

}  // namespace

int main(int argc, char** argv) {
  const auto start = Clock::now();
  try {
    run(argc > 1 ? argv[1] : "", Arguments(argv + std::min(argc, 2), argv + argc), start);
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_growth: {}\n", e.what());
    return 1;
  }
}
