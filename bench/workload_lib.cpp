#include "workload_lib.hpp"

#include <cstring>
#include <stdexcept>
#include <unordered_set>

namespace bench {

void fill_with_integers(std::span<std::byte> bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const std::uint64_t value = random() >> 42;
    std::memcpy(bytes.data() + i, &value, sizeof value);
  }
}

std::vector<std::uint64_t> pick_pages(std::mt19937_64& random, std::uint64_t pages,
                                      std::size_t count) {
  std::unordered_set<std::uint64_t> seen;
  std::vector<std::uint64_t> picked;
  while (picked.size() < count) {
    const std::uint64_t page = random() % pages;
    if (seen.insert(page).second) picked.push_back(page);
  }
  return picked;
}

void store_into(std::byte* base, std::span<const std::uint64_t> pages, std::mt19937_64& random) {
  for (const std::uint64_t page : pages) {
    const std::uint64_t value = random();
    const std::size_t offset = (value >> 55) * 8;
    std::memcpy(base + page * kPageBytes + offset, &value, sizeof value);
  }
}

vellum::Engine engine_named(const std::string& name) {
  for (const auto engine :
       {vellum::Engine::automatic, vellum::Engine::uffd, vellum::Engine::sigsegv}) {
    if (name == vellum::engine_name(engine)) return engine;
  }
  throw std::runtime_error("no engine '" + name + "': automatic, uffd or sigsegv");
}

std::uint64_t sum(std::span<const std::byte> bytes) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t value;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    total += value;
  }
  return total;
}

}  // namespace bench
