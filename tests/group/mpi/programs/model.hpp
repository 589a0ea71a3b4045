// The content of a partition after a number of steps: the ranks store it, and the test compares it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace vellum::test {

inline constexpr std::uint64_t kPartitionBytes = 64u * 4096;
inline constexpr std::uint64_t kWords = kPartitionBytes / 8;

inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The progress of rank 0, in a file that it maps: it is readable even after a kill of the launcher.
struct StepsOfJob {
  std::uint64_t begun = 0, made = 0;  // steps whose version has begun, and is completed
  std::uint64_t pushed = 0;           // and is complete at the remote
};

// The stores of a step; word 0 is the number of steps.
inline void store_step(std::uint64_t* words, std::uint64_t partition, std::uint64_t step) {
  words[0] = step;
  const std::uint64_t seed = mixed(partition * 1'000'003 + step);
  const std::uint64_t count = 1 + seed % 40;
  for (std::uint64_t i = 0; i < count; ++i) {
    words[1 + mixed(seed + i) % (kWords - 1)] = mixed(seed ^ i);
  }
}

inline std::vector<std::uint64_t> content_after(std::uint64_t partition, std::uint64_t steps) {
  std::vector<std::uint64_t> words(kWords);
  for (std::uint64_t step = 1; step <= steps; ++step) store_step(words.data(), partition, step);
  return words;
}

// Returns the number of steps; throws unless the content agrees with it.
inline std::uint64_t check_content(const void* data, std::uint64_t bytes, std::uint64_t partition) {
  if (bytes != kPartitionBytes) throw std::runtime_error("a partition has another size");
  const std::uint64_t steps = *static_cast<const std::uint64_t*>(data);
  if (steps > 1'000'000) throw std::runtime_error("the number of steps is none");
  if (std::memcmp(data, content_after(partition, steps).data(), bytes) != 0) {
    throw std::runtime_error("partition " + std::to_string(partition) + " is not what " +
                             std::to_string(steps) + " steps make of it");
  }
  return steps;
}

}  // namespace vellum::test
