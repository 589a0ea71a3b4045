#include "format/image_tail.hpp"

#include <gtest/gtest.h>

namespace vellum::format {
namespace {

Uuid store_of_tail(int first) {
  Uuid id{};
  id[0] = static_cast<std::byte>(first);
  return id;
}

ImageTail tail_sample() {
  return {.branch_id = 7,
          .sequence = 12,
          .time_ns = 1'700'000'000'000'000'000,
          .begin_bytes = 5000,
          .end_bytes = 9000,
          .content_checksum = 0x0123456789abcdef,
          .boot = 0x1357};
}

TEST(ImageTailRecord, IsReadBack) {
  ImageTail out;
  ASSERT_TRUE(
      decode_image_tail(encode_image_tail(tail_sample(), store_of_tail(1)), store_of_tail(1), out));
  EXPECT_EQ(tail_sample(), out);
}

TEST(ImageTailRecord, DamagedOrForeignIsNone) {
  const auto good = encode_image_tail(tail_sample(), store_of_tail(1));
  ImageTail out;
  EXPECT_FALSE(decode_image_tail(good, store_of_tail(2), out));
  EXPECT_FALSE(decode_image_tail(std::span(good).first(good.size() - 1), store_of_tail(1), out));
  EXPECT_FALSE(decode_image_tail(std::array<std::byte, kImageTailBytes>{}, store_of_tail(1), out));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode_image_tail(bad, store_of_tail(1), out)) << bit;
  }
}

TEST(ImageTailRecord, EndsAreBounded) {
  ImageTail out, empty = tail_sample(), reversed = tail_sample(), too_long = tail_sample(),
                 too_far = tail_sample();
  empty.end_bytes = empty.begin_bytes;
  reversed.end_bytes = reversed.begin_bytes - 1;
  too_long.end_bytes = too_long.begin_bytes + kMaxImageTailBytes + 1;
  too_far.begin_bytes = kMaxRegionBytes;
  too_far.end_bytes = kMaxRegionBytes + 1;
  for (const ImageTail& tail : {empty, reversed, too_long, too_far})
    EXPECT_FALSE(
        decode_image_tail(encode_image_tail(tail, store_of_tail(1)), store_of_tail(1), out));
}

}  // namespace
}  // namespace vellum::format
