// What this process has of what may leak, and whether it becomes more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace vellum::test {

struct Resources {
  std::uint64_t resident_kib = 0;
  std::uint64_t heap_kib = 0;  // in use by malloc; 0 under a sanitizer
  std::uint64_t mappings = 0;
  std::uint64_t descriptors = 0;
  std::uint64_t threads = 0;
  std::uint64_t store_kib = 0;  // on the medium; 0: not asked for

  static Resources now();
  // With what the files below the directory take.
  static Resources now(const std::string& store_directory);
  std::string to_string() const;
};

// Growth that is none: of `kib` or a number, and of a share of what there was.
struct Tolerance {
  double resident_kib, heap_kib, mappings, descriptors, threads, store_kib;
  double share;  // of resident_kib, mappings and descriptors, too
};

// Samples of a run in four quarters. Takes no more memory the longer it runs: of each quarter it
// keeps a random choice.
class Trend {
 public:
  Trend();
  // `progress`: 0..1, of the run.
  void add(double progress, const Resources& sample);
  // The median of each; of a quarter without samples nothing but zeros.
  Resources median(std::size_t quarter) const;
  // What has grown from the second quarter to the last; empty: nothing.
  std::vector<std::string> growth(const Tolerance& tolerance) const;
  std::string to_string() const;

 private:
  static constexpr std::size_t kKept = 512;
  struct Quarter {
    std::vector<Resources> kept;
    std::uint64_t seen = 0;
  };
  std::array<Quarter, 4> quarters_;
  std::mt19937_64 random_{1};
};

}  // namespace vellum::test
