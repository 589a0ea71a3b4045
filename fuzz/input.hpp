// fuzz/input.hpp: splits an input into numbers and byte strings. An exhausted input gives
// zeros.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "target.hpp"

namespace vellum::fuzz {

class Input {
 public:
  explicit Input(View bytes) : left_(bytes) {}
  bool empty() const { return left_.empty(); }
  View rest() const { return left_; }
  View take(std::size_t bytes) {
    const View out = left_.first(std::min(bytes, left_.size()));
    left_ = left_.subspan(out.size());
    return out;
  }
  template <typename T>
  T number() {
    T value{};
    const View bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }

 private:
  View left_;
};

}  // namespace vellum::fuzz
