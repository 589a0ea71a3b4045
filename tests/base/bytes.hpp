// Byte strings for tests.
#pragma once

#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace vellum::test {

using Bytes = std::vector<std::byte>;

inline Bytes to_bytes(std::string_view text) {
  Bytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

inline std::string_view to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline Bytes random_bytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Like a heap of small nodes: eight-byte words that differ in their low bytes.
inline Bytes compressible_bytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (std::size_t at = 0; at + 8 <= size; at += 8) {
    const std::uint64_t word = 0x00007f1234000000 + random() % 4096 * 16;
    std::memcpy(bytes.data() + at, &word, 8);
  }
  return bytes;
}

}  // namespace vellum::test
