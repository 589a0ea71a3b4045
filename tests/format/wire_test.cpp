#include "format/wire/wire.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace vellum::format {
namespace {

TEST(Wire, VarintsAndZigzagsComeBack) {
  std::vector<std::byte> out;
  ByteWriter w(out);
  std::vector<std::uint64_t> values{
      0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX};
  for (const auto v : values) w.varint(v);
  const std::vector<std::int64_t> signed_values{0, -1, 1, INT64_MIN, INT64_MAX, -64, 64};
  for (const auto v : signed_values) w.zigzag(v);
  ByteReader in(out);
  for (const auto v : values) EXPECT_EQ(in.varint(), v);
  for (const auto v : signed_values) EXPECT_EQ(in.zigzag(), v);
  EXPECT_TRUE(in.done());
}

TEST(Wire, VarintBeyond64BitsIsRefused) {
  const std::vector<std::byte> eleven(11, std::byte{0x80});
  ByteReader in(eleven);
  EXPECT_EQ(in.varint(), 0u);
  EXPECT_FALSE(in.ok());
  std::vector<std::byte> too_large(9, std::byte{0xff});
  too_large.push_back(std::byte{2});
  ByteReader in2(too_large);
  in2.varint();
  EXPECT_FALSE(in2.ok());
}

TEST(Wire, ReadsPastTheEndGiveZeroAndStayFailed) {
  const std::vector<std::byte> three(3, std::byte{1});
  ByteReader in(three);
  EXPECT_EQ(in.u32(), 0u);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.u8(), 0u);
  EXPECT_FALSE(in.done());
}

TEST(Wire, StringLongerThanItsLimitOrItsInputIsRefused) {
  std::vector<std::byte> out;
  ByteWriter(out).string("abcdef");
  ByteReader over_limit(out);
  EXPECT_EQ(over_limit.string(5), "");
  EXPECT_FALSE(over_limit.ok());
  ByteReader cut(std::span<const std::byte>(out).first(4));
  EXPECT_EQ(cut.string(100), "");
  EXPECT_FALSE(cut.ok());
  ByteReader good(out);
  EXPECT_EQ(good.string(6), "abcdef");
  EXPECT_TRUE(good.done());
}

}  // namespace
}  // namespace vellum::format
