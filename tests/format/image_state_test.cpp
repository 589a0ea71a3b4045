#include "format/image_state.hpp"

#include <gtest/gtest.h>

namespace vellum::format {
namespace {

Uuid store_id(int first) {
  Uuid id{};
  id[0] = static_cast<std::byte>(first);
  return id;
}

ImageState sample() {
  ImageState state;
  state.branch_id = 0x1234;
  state.in_use = state.adopting = true;
  state.sequence = 77;
  state.time_ns = -5;
  state.device = 1;
  state.inode = 1ULL << 40;
  state.size_bytes = 12'345;
  state.modified_ns = 3;
  state.changed_ns = 4;
  state.born_ns = 5;
  state.path = "/somewhere/a file";
  return state;
}

TEST(ImageState, IsReadAsItWasWritten) {
  for (const bool in_store : {false, true}) {
    ImageState state = sample();
    if (in_store) state.path.clear();
    ImageState out;
    EXPECT_EQ(decode_image_state(encode_image_state(state, store_id(1)), store_id(1), out),
              nullptr);
    EXPECT_EQ(out, state);
  }
}

TEST(ImageState, WhatNoWriterWritesIsRefusedThoughTheChecksumIsRight) {
  ImageState relative = sample(), zero_byte = sample(), huge = sample();
  relative.path = "a/b";
  zero_byte.path = std::string("/a\0b", 4);
  huge.size_bytes = kMaxRegionBytes + 1;
  for (const auto& state : {relative, zero_byte, huge}) {
    ImageState out;
    EXPECT_NE(decode_image_state(encode_image_state(state, store_id(1)), store_id(1), out),
              nullptr);
  }
}

TEST(TouchedSector, BelongsToItsPlace) {
  TouchedSector ranges{};
  ranges[0] = 5;
  ranges[kTouchedWords - 1] = 1ULL << 63;
  const auto good = encode_touched_sector(ranges, store_id(1), 7, 3);
  TouchedSector out{};
  ASSERT_TRUE(decode_touched_sector(good, store_id(1), 7, 3, out));
  EXPECT_EQ(out, ranges);
  EXPECT_FALSE(decode_touched_sector(good, store_id(2), 7, 3, out));
  EXPECT_FALSE(decode_touched_sector(good, store_id(1), 8, 3, out));
  EXPECT_FALSE(decode_touched_sector(good, store_id(1), 7, 2, out));
  EXPECT_FALSE(decode_touched_sector(std::span(good).first(511), store_id(1), 7, 3, out));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode_touched_sector(bad, store_id(1), 7, 3, out)) << bit;
  }
}

}  // namespace
}  // namespace vellum::format
