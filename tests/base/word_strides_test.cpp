#include "base/bytes/word_strides.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/bytes.hpp"

namespace vellum::base {
namespace {

using test::Bytes;
using test::random_bytes;

std::uint64_t word(const Bytes& bytes, std::size_t index) {
  std::uint64_t value;
  std::memcpy(&value, bytes.data() + index * 8, sizeof value);
  return value;
}

// Structures of `stride` words. The first word is a counter, the others are random.
Bytes structures(std::size_t stride) {
  Bytes out = random_bytes(8192, stride);
  for (std::uint64_t i = 0; i * stride < out.size() / 8; ++i) {
    const std::uint64_t value = i * 1000;
    std::memcpy(out.data() + i * stride * 8, &value, sizeof value);
  }
  return out;
}

TEST(WordStrides, EachWordLosesTheOneAStrideBefore) {
  const Bytes words = random_bytes(4096, 1);
  Bytes out(words.size());
  take_differences(words, out, 5);
  for (std::size_t i = 0; i < words.size() / 8; ++i) {
    ASSERT_EQ(word(out, i), word(words, i) - (i < 5 ? 0 : word(words, i - 5))) << i;
  }
}

TEST(WordStrides, SumsBringEverySizeBack) {
  for (std::size_t size = 0; size < 700; ++size) {
    const Bytes words = random_bytes(size, size);
    for (const std::size_t stride : {std::size_t{1}, std::size_t{3}, kMaxStrideWords}) {
      Bytes out(size);
      take_differences(words, out, stride);
      sum_differences(out, stride);
      ASSERT_EQ(out, words) << size << " at stride " << stride;
    }
  }
}

TEST(WordStrides, TheRestStaysAsItIs) {
  const Bytes words = random_bytes(80 + 7, 1);
  Bytes out(words.size());
  take_differences(words, out, 2);
  EXPECT_TRUE(std::equal(words.begin() + 80, words.end(), out.begin() + 80));
  EXPECT_TRUE(std::equal(words.begin(), words.begin() + 16, out.begin()));
}

TEST(WordStrides, ARegularStrideIsFound) {
  for (std::size_t stride = 1; stride <= 16; ++stride) {
    EXPECT_EQ(regular_stride(structures(stride)), stride);
  }
}

TEST(WordStrides, ChanceAndSamenessHaveNone) {
  EXPECT_EQ(regular_stride(random_bytes(8192, 1)), 0u);
  EXPECT_EQ(regular_stride(Bytes(8192)), 0u);
  EXPECT_EQ(regular_stride({}), 0u);
}

}  // namespace
}  // namespace vellum::base
