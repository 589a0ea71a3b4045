// A persistent heap of Boost.Interprocess in a plain file, as in its manual: this file does not use
// Vellum. Compiled by vellum-clang++, flush() is failure-atomic for VELLUM_ATOMIC_FILES.
//   heap FILE OPERATIONS SEED   adds and removes keys, and flushes after each
//   heap FILE check             prints the number of operations, and whether all is whole
#include <boost/container/map.hpp>
#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/managed_mapped_file.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace bi = boost::interprocess;
using File = bi::managed_mapped_file;

struct Value {
  char text[100];
};
using Map = boost::container::map<
    std::uint64_t, Value, std::less<std::uint64_t>,
    bi::allocator<std::pair<const std::uint64_t, Value>, File::segment_manager>>;

struct Heap {
  explicit Heap(const char* path)
      : file(bi::open_or_create, path, 4 << 20),
        map(file.find_or_construct<Map>("map")(std::less<std::uint64_t>(),
                                               file.get_segment_manager())),
        done(file.find_or_construct<std::uint64_t>("done")(0)),
        sum(file.find_or_construct<std::uint64_t>("sum")(0)) {}

  void add_or_remove(std::uint64_t key) {
    const auto at = map->find(key);
    if (at == map->end()) {
      Value value{};
      std::snprintf(value.text, sizeof value.text, "value of %ju", std::uintmax_t{key});
      map->emplace(key, value);
      *sum += key;
    } else {
      map->erase(at);
      *sum -= key;
    }
    ++*done;
  }

  bool is_whole() const {
    std::uint64_t keys = 0, count = 0;
    for (const auto& [key, value] : *map) {
      char expected[100];
      std::snprintf(expected, sizeof expected, "value of %ju", std::uintmax_t{key});
      if (std::strcmp(expected, value.text) != 0) return false;
      keys += key;
      ++count;
    }
    return keys == *sum && count == map->size();
  }

  File file;
  Map* map;
  std::uint64_t *done, *sum;
};

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Heap heap(argv[1]);
  if (std::strcmp(argv[2], "check") == 0) {
    const bool whole = heap.is_whole() && heap.file.check_sanity();
    std::printf("%ju %s\n", std::uintmax_t{*heap.done}, whole ? "whole" : "torn");
    return whole ? 0 : 1;
  }
  std::mt19937_64 random(std::strtoull(argv[3], nullptr, 10));
  for (std::uint64_t left = std::strtoull(argv[2], nullptr, 10); left > 0; --left) {
    heap.add_or_remove(random() % 10000);
    if (!heap.file.flush()) return 1;
  }
}
