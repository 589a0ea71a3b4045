// Transactions that show whether a region is whole: generation g writes a few pages, selected and
// filled by g, and a header with g and a checksum over everything. A reader of the region can check
// that it has exactly one generation.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vellum/region.hpp>

namespace vellum::test {

class Generations {
 public:
  static constexpr std::uint64_t kPages = 96;
  static constexpr std::uint64_t kBytes = kPages * 4096;

  // Writes generation `generation` over the previous one.
  static void write(void* data, std::uint64_t generation) {
    auto* const words = static_cast<std::uint64_t*>(data);
    std::mt19937_64 random(generation);
    const std::uint64_t pages = 1 + random() % 12;
    for (std::uint64_t i = 0; i < pages; ++i) {
      const std::uint64_t page = 1 + random() % (kPages - 1);
      const std::uint64_t first = random() % kWordsPerPage;
      const std::uint64_t count =
          random() % 4 == 0 ? kWordsPerPage - first
                            : 1 + random() % std::min<std::uint64_t>(8, kWordsPerPage - first);
      for (std::uint64_t k = 0; k < count; ++k) {
        words[page * kWordsPerPage + first + k] = random() % 16 == 0 ? 0 : random();
      }
    }
    words[kWordsPerPage] = generation;  // the first payload page changes each time
    words[0] = generation;
    words[kWordsPerPage - 1] = sum(words);
  }

  // The whole generation that the memory contains, or kTorn.
  static constexpr std::uint64_t kTorn = ~std::uint64_t{0};
  static std::uint64_t read(const void* data) {
    const auto* const words = static_cast<const std::uint64_t*>(data);
    if (words[0] == 0) return all_zero(words) ? 0 : kTorn;
    if (words[kWordsPerPage] != words[0] || words[kWordsPerPage - 1] != sum(words)) return kTorn;
    return words[0];
  }

 private:
  static constexpr std::uint64_t kWordsPerPage = 512;

  static std::uint64_t sum(const std::uint64_t* words) {
    std::uint64_t sum = words[0];
    for (std::uint64_t i = kWordsPerPage; i < kPages * kWordsPerPage; ++i) {
      sum = (sum ^ words[i]) * 0x9E3779B97F4A7C15ULL;
      sum ^= sum >> 29;
    }
    return sum;
  }
  static bool all_zero(const std::uint64_t* words) {
    for (std::uint64_t i = 0; i < kPages * kWordsPerPage; ++i) {
      if (words[i] != 0) return false;
    }
    return true;
  }
};

}  // namespace vellum::test
