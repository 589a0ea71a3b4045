#include "base/bytes/word_strides.hpp"

#include <cassert>
#include <cstdint>
#include <cstring>

#include "base/bytes/word_planes.hpp"

namespace vellum::base {
namespace {

inline std::uint64_t load(const std::byte* at) noexcept {
  std::uint64_t word;
  std::memcpy(&word, at, kWordBytes);
  return word;
}
inline void store(std::byte* at, std::uint64_t word) noexcept {
  std::memcpy(at, &word, kWordBytes);
}

// Counts the words whose difference is the same as one stride before, and not zero.
std::size_t repeats(const std::byte* words, std::size_t count, std::size_t stride) noexcept {
  std::size_t found = 0;
  for (std::size_t i = 2 * stride; i < count; ++i) {
    const std::byte* const at = words + i * kWordBytes;
    const std::uint64_t now = load(at);
    const std::uint64_t before = load(at - stride * kWordBytes);
    const std::uint64_t first = load(at - 2 * stride * kWordBytes);
    found += static_cast<std::size_t>((now - before == before - first) & (now != before));
  }
  return found;
}

// Counts the words that equal the word one stride before, except in the low bytes.
std::size_t similar(const std::byte* words, std::size_t count, std::size_t stride) noexcept {
  constexpr int kLowBits = 24;
  std::size_t found = 0;
  for (std::size_t i = stride; i < count; ++i) {
    const std::uint64_t now = load(words + i * kWordBytes);
    const std::uint64_t before = load(words + (i - stride) * kWordBytes);
    found += static_cast<std::size_t>((now ^ before) >> kLowBits == 0);
  }
  return found;
}

// The smallest stride with clearly higher count than `most` and than every smaller stride, or
// `none`.
template <typename Count>
std::size_t most_found(std::span<const std::byte> words, std::size_t most, std::size_t none,
                       Count count_at) noexcept {
  const std::size_t count = words.size() / kWordBytes;
  std::size_t best = none;
  for (std::size_t stride = 1; stride <= kMaxFoundStrideWords; ++stride) {
    const std::size_t found = count_at(words.data(), count, stride);
    if (found > most + most / 16) {
      most = found;
      best = stride;
    }
  }
  return best;
}

}  // namespace

std::size_t regular_stride(std::span<const std::byte> words) noexcept {
  // Smaller counts are chance or not worthwhile.
  return most_found(words, words.size() / kWordBytes / 32, 0, repeats);
}

std::size_t similar_stride(std::span<const std::byte> words) noexcept {
  return most_found(words, 0, 1, similar);
}

void take_differences(std::span<const std::byte> words, std::span<std::byte> differences,
                      std::size_t stride_words) noexcept {
  assert(words.size() == differences.size());
  assert(stride_words >= 1 && stride_words <= kMaxStrideWords);
  const std::size_t stride = stride_words * kWordBytes;
  const std::size_t end = words.size() / kWordBytes * kWordBytes;
  if (end <= stride) {
    if (!words.empty()) std::memcpy(differences.data(), words.data(), words.size());
    return;
  }
  std::memcpy(differences.data(), words.data(), stride);
  for (std::size_t at = stride; at < end; at += kWordBytes) {
    store(differences.data() + at, load(words.data() + at) - load(words.data() + at - stride));
  }
  if (end < words.size()) {
    std::memcpy(differences.data() + end, words.data() + end, words.size() - end);
  }
}

void sum_differences(std::span<std::byte> words, std::size_t stride_words) noexcept {
  assert(stride_words >= 1 && stride_words <= kMaxStrideWords);
  const std::size_t stride = stride_words * kWordBytes;
  const std::size_t end = words.size() / kWordBytes * kWordBytes;
  for (std::size_t at = stride; at < end; at += kWordBytes) {
    store(words.data() + at, load(words.data() + at) + load(words.data() + at - stride));
  }
}

}  // namespace vellum::base
