// base/memory/zeros.hpp: stores to memory that touch only the pages that change.
//
// Each page stored to is one more to commit, and a zero page that is only read uses no memory of
// its own.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace vellum::base {

inline bool is_zero(std::span<const std::byte> bytes) noexcept {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Calls visit(address, length) for each page's part of a range of memory.
template <typename Visit>
void for_pages(std::byte* at, std::size_t length_bytes, const Visit& visit) {
  constexpr std::size_t kPageBytes = 4096;
  while (length_bytes > 0) {
    const std::size_t in_page = reinterpret_cast<std::uintptr_t>(at) % kPageBytes;
    const std::size_t n = std::min(length_bytes, kPageBytes - in_page);
    visit(at, n);
    at += n;
    length_bytes -= n;
  }
}

inline void make_zero(std::byte* memory, std::size_t length_bytes) {
  assert(memory != nullptr || length_bytes == 0);
  for_pages(memory, length_bytes, [](std::byte* at, std::size_t n) {
    if (!is_zero({at, n})) std::memset(at, 0, n);
  });
}

inline void make_equal(std::byte* memory, std::span<const std::byte> bytes) {
  assert(memory != nullptr || bytes.empty());
  for_pages(memory, bytes.size(), [&](std::byte* at, std::size_t n) {
    const std::byte* const wanted = bytes.data() + (at - memory);
    if (std::memcmp(at, wanted, n) != 0) std::memcpy(at, wanted, n);
  });
}

}  // namespace vellum::base
