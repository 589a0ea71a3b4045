// The resources of this process that may leak, and their growth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vellum::test {

struct Resources {
  std::uint64_t resident_kib = 0;
  std::uint64_t heap_kib = 0;  // in use by malloc; 0 under a sanitizer
  std::uint64_t mappings = 0;
  std::uint64_t descriptors = 0;
  std::uint64_t threads = 0;
  std::uint64_t store_kib = 0;  // on the medium; 0: not measured

  static Resources now();
  // With the disk usage of the files below the directory.
  static Resources now(const std::string& store_directory);
  std::string to_string() const;
};

// Growth that is accepted: of `kib` or a number, plus a share of the initial value.
struct Tolerance {
  double resident_kib, heap_kib, mappings, descriptors, threads, store_kib;
  double share;  // of resident_kib, mappings and descriptors, too
};

// Samples of a run in sequence, divided into quarters by their number. Its memory is bounded: of a
// long run it keeps every second sample, then every fourth, and so on.
class Trend {
 public:
  Trend() { kept_.reserve(kMax); }
  void add(const Resources& sample);
  // The median of each. REQUIRES: four samples.
  Resources median(std::size_t quarter) const;
  // The resources that have grown from the second quarter to the last; empty: none. Reports too few
  // samples as well.
  std::vector<std::string> growth(const Tolerance& tolerance) const;
  std::string to_string() const;

 private:
  static constexpr std::size_t kMax = 2048;
  std::vector<Resources> kept_;
  std::uint64_t seen_ = 0, step_ = 1;
};

}  // namespace vellum::test
