// Vellum's heap in a region with tracker cards, compiled by vellum-clang++: only the pass reports
// the stores of the allocator and of the containers.
//   region_heap STORE OPERATIONS SEED | STORE check
#include <vellum/heap.hpp>
#include <vellum/store.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

using Map = vellum::map<std::uint64_t, vellum::string>;

static bool is_whole(Map& map, std::uint64_t sum) {
  std::uint64_t keys = 0;
  for (const auto& [key, value] : map) {
    if (value != ("value of " + std::to_string(key)).c_str()) return false;
    keys += key;
  }
  return keys == sum;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  vellum::Store store = vellum::Store::open_or_create(argv[1]);
  vellum::RegionOptions options;
  options.tracker = vellum::Tracker::cards;
  vellum::Region region = store.open_or_create_region("main", 1 << 20, options);
  vellum::Heap heap(region);
  Map& map = *heap.find_or_construct<Map>("map");
  auto& done = *heap.find_or_construct<std::uint64_t>("done");
  auto& sum = *heap.find_or_construct<std::uint64_t>("sum");
  if (std::strcmp(argv[2], "check") == 0) {
    const bool whole = is_whole(map, sum);
    std::printf("%ju %s\n", std::uintmax_t{done}, whole ? "whole" : "torn");
    return whole ? 0 : 1;
  }
  std::mt19937_64 random(std::strtoull(argv[3], nullptr, 10));
  for (std::uint64_t left = std::strtoull(argv[2], nullptr, 10); left > 0; --left) {
    const std::uint64_t key = random() % 10000;
    if (map.erase(key) != 0) {
      sum -= key;
    } else {
      map.emplace(key, ("value of " + std::to_string(key)).c_str());
      sum += key;
    }
    ++done;
    region.commit();
  }
}
