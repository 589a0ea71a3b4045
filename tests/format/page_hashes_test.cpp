#include "format/records/page_hashes.hpp"

#include <gtest/gtest.h>

#include "format/samples.hpp"

namespace vellum::format {
namespace {

TEST(PageHashes, ComeBack) {
  const auto hashes = samples::page_hashes();
  std::vector<PageHash> back;
  ASSERT_TRUE(decode_page_hashes(encode_page_hashes(hashes), back));
  EXPECT_EQ(back, hashes);
}

TEST(PageHashes, EveryTruncationAndATailAreRefused) {
  auto raw = encode_page_hashes(samples::page_hashes());
  std::vector<PageHash> back;
  for (std::size_t n = 0; n < raw.size(); ++n) {
    EXPECT_FALSE(decode_page_hashes(std::span(raw).first(n), back)) << n;
    EXPECT_TRUE(back.empty());
  }
  raw.push_back(std::byte{0});
  EXPECT_FALSE(decode_page_hashes(raw, back));
}

TEST(PageHashes, WhatCannotBeIsRefused) {
  const auto refused = [](auto change) {
    auto hashes = samples::page_hashes();
    change(hashes);
    std::vector<PageHash> back;
    return !decode_page_hashes(encode_page_hashes(hashes), back);
  };
  EXPECT_TRUE(refused([](auto& h) { h[2].slot = kMaxRecordRawBytes / kPageBytes; }));
  EXPECT_TRUE(refused([](auto& h) { h[2].record.offset_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& h) { h[2].record.offset_bytes = kMaxPackOffsetBytes; }));
}

TEST(PageHashes, FlippedBitsStayInside) {
  auto raw = encode_page_hashes(samples::page_hashes());
  std::vector<PageHash> back;
  for (std::size_t bit = 0; bit < raw.size() * 8; ++bit) {
    raw[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    if (decode_page_hashes(raw, back)) {
      EXPECT_LE(back.size(), kMaxPageHashes);
    }
    raw[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
}

}  // namespace
}  // namespace vellum::format
