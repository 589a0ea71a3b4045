#include "format/records/page_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "format/wire/wire.hpp"
#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;

std::vector<MapEntry> decode(std::span<const std::byte> raw) {
  std::vector<MapEntry> out(kMaxEntriesPerMapBlock);
  const int n = decode_map_block(raw, out);
  out.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return out;
}

bool refused(const std::vector<MapEntry>& entries) {
  return decode(encode_map_block(entries)).empty();
}

// A run as after merging many checkpoints: several records interleaved, chains, extents, zeros.
std::vector<MapEntry> random_entries(std::mt19937_64& random, std::size_t n) {
  std::vector<RecordRef> records;
  for (std::uint64_t i = 0; i < 1 + random() % 40; ++i) {
    records.push_back({(1 + random() % 3) << 32 | (1 + random() % 4), 64 + 8 * (random() % 100000),
                       static_cast<std::uint32_t>(random())});
  }
  std::vector<MapEntry> out;
  PageNumber page = random() % 1000;
  while (out.size() < n) {
    const RecordRef& r = records[random() % records.size()];
    const auto slot = static_cast<std::uint32_t>(random() % 4000);
    const auto count = static_cast<std::uint32_t>(1 + random() % 20);
    if (random() % 5 == 0) {
      out.push_back({page, count * 1000, 0, PageKind::zero, 0, {}});
    } else if (random() % 2 == 0) {
      out.push_back({page, count, slot, PageKind::base, 0, r});
    } else {
      for (int depth = static_cast<int>(1 + random() % 4); depth > 0 && out.size() < n; --depth) {
        out.push_back({page, 1, slot, PageKind::delta, static_cast<std::uint8_t>(depth),
                       records[random() % records.size()]});
      }
    }
    page += out.back().count + (random() % 3 == 0 ? random() % 5000 : 0);
  }
  return out;
}

TEST(MapBlock, RoundTrip) {
  EXPECT_EQ(decode(encode_map_block(samples::map_entries())), samples::map_entries());
}

TEST(MapBlock, RandomRoundTrips) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const auto entries = random_entries(random, 1 + random() % kMaxEntriesPerMapBlock);
    const Bytes raw = encode_map_block(entries);
    ASSERT_LE(raw.size(), kMaxMapBlockRawBytes);
    ASSERT_EQ(decode(raw), entries);
  }
}

// With every column at its maximum, a block must still fit the limit that readers reserve.
TEST(MapBlock, TheLargestFits) {
  std::vector<MapEntry> entries;
  for (std::uint64_t i = 0; i < kMaxEntriesPerMapBlock; ++i) {
    const bool odd = i % 2 == 1;
    entries.push_back(
        {i << 23,
         1,
         odd ? 0u : 4095u,
         PageKind::delta,
         255,
         {odd ? 1 : (1ULL << 63) + i, odd ? 64 : kMaxPackOffsetBytes - 8 * (i + 1), 0xffffffff}});
  }
  const Bytes raw = encode_map_block(entries);
  EXPECT_LE(raw.size(), kMaxMapBlockRawBytes);
  EXPECT_EQ(decode(raw), entries);
}

TEST(MapBlock, ManyDeltasOfOneRecordTakeFiveBytesEach) {
  std::vector<MapEntry> entries;
  for (std::uint32_t i = 0; i < 1024; ++i) {
    entries.push_back({1000 + i * 3, 1, i, PageKind::delta, 1, {1, 64, 0x12345678}});
  }
  EXPECT_LE(encode_map_block(entries).size(), 1024u * 5 + 32);
}

TEST(MapBlock, ExtentsInConsecutiveRecordsTakeElevenBytesEach) {
  std::vector<MapEntry> entries;
  for (std::uint32_t i = 0; i < 1024; ++i) {
    entries.push_back({i * 16, 16, 0, PageKind::base, 0, {1, 64 + i * 16384, i * 0x9e3779b9}});
  }
  EXPECT_LE(encode_map_block(entries).size(), 1024u * 12 + 32);
}

// Merged runs: adjacent pages alternate between two records, each with consecutive slots.
TEST(MapBlock, InterleavedRecordsTakeFiveBytesEach) {
  std::vector<MapEntry> entries;
  for (std::uint32_t i = 0; i < 1024; ++i) {
    entries.push_back({i, 1, i / 2, PageKind::delta, 1, {1 + i % 2, 64, 5}});
  }
  EXPECT_LE(encode_map_block(entries).size(), 1024u * 5 + 64);
}

TEST(MapBlock, OrderOverlapAndKindsAreChecked) {
  const RecordRef r{1, 64, 0};
  const MapEntry base{10, 4, 0, PageKind::base, 0, r};
  EXPECT_FALSE(refused({base}));
  EXPECT_TRUE(refused({base, {13, 1, 0, PageKind::base, 0, r}}));  // overlap
  EXPECT_TRUE(refused({{10, 1, 0, PageKind::base, 0, r},
                       {10, 1, 1, PageKind::delta, 1, r}}));  // base above a delta
  EXPECT_TRUE(refused({{10, 1, 0, PageKind::delta, 1, r},
                       {10, 2, 1, PageKind::base, 0, r}}));  // chain onto an extent
  EXPECT_TRUE(refused({{10, 1, 0, PageKind::delta, 1, r},
                       {10, 1, 1, PageKind::delta, 1, r}}));  // depth does not decrease
  EXPECT_TRUE(refused({{10, 1, 0, PageKind::delta, 0, r}}));  // a delta of depth 0
  EXPECT_TRUE(refused({{10, 2, 0, PageKind::delta, 1, r}}));  // a delta extent
  EXPECT_TRUE(refused({{10, 1, 0, PageKind::base, 1, r}}));
  EXPECT_TRUE(refused({{10, 1, 0, PageKind::zero, 1, {}}}));
  EXPECT_TRUE(refused({{10, 1, 4096, PageKind::delta, 1, r}}));  // slots
  EXPECT_TRUE(refused({{10, 2, 32767, PageKind::base, 0, r}}));
  EXPECT_FALSE(refused({{10, 1, 32767, PageKind::base, 0, r}}));
  EXPECT_TRUE(refused({{10, 1, 0, PageKind::base, 0, {0, 64, 0}}}));  // no such pack
  EXPECT_TRUE(refused({{10, 1, 0, PageKind::base, 0, {1, 56, 0}}}));  // inside the pack header
  EXPECT_TRUE(refused({{10, 1, 0, PageKind::base, 0, {1, kMaxPackOffsetBytes, 0}}}));
  const PageNumber end = kMaxRegionBytes / kPageBytes;
  EXPECT_FALSE(refused({{end - 1, 1, 0, PageKind::base, 0, r}}));
  EXPECT_TRUE(refused({{end, 1, 0, PageKind::base, 0, r}}));
  EXPECT_TRUE(refused({{end - 1, 2, 0, PageKind::zero, 0, {}}}));
}

TEST(MapBlock, TooSmallARoomIsRefused) {
  std::vector<MapEntry> room(3);
  EXPECT_EQ(decode_map_block(encode_map_block(samples::map_entries()), room), -1);
}

TEST(MapBlock, RecordsOutOfFirstUseOrderOrUnusedAreRefused) {
  Bytes raw;
  const auto build = [&](std::int64_t first_index, std::uint64_t records) {
    raw.clear();
    ByteWriter w(raw);
    w.varint(1);
    w.varint(records);
    for (std::uint64_t i = 0; i < records; ++i) w.zigzag(1);
    for (std::uint64_t i = 0; i < records; ++i) w.zigzag(8);
    for (std::uint64_t i = 0; i < records; ++i) w.u32(0);
    w.varint(0);
    w.varint(11);
    w.varint(1);
    w.zigzag(first_index);
    w.zigzag(0);
    return decode(raw).size();
  };
  EXPECT_EQ(build(0, 1), 1u);
  EXPECT_EQ(build(1, 1), 0u);
  EXPECT_EQ(build(-1, 1), 0u);
  EXPECT_EQ(build(0, 2), 0u);
  EXPECT_EQ(build(0, 0), 0u);
}

TEST(RunRoot, RoundTrip) {
  RunRoot back;
  ASSERT_TRUE(decode_run_root(encode_run_root(samples::run_root()), back));
  EXPECT_EQ(back, samples::run_root());
  RunRoot extremes = samples::run_root();
  extremes.packs = {1, UINT64_MAX};
  ASSERT_TRUE(decode_run_root(encode_run_root(extremes), back));
  EXPECT_EQ(back, extremes);
  extremes.packs.clear();  // a run of zeros only
  ASSERT_TRUE(decode_run_root(encode_run_root(extremes), back));
  EXPECT_EQ(back, extremes);
}

TEST(RunRoot, RefusesWhatCannotBe) {
  const auto bad = [](auto change) {
    RunRoot root = samples::run_root();
    change(root.blocks);
    RunRoot back;
    return !decode_run_root(encode_run_root(root), back) && back.blocks.empty();
  };
  EXPECT_TRUE(bad([](auto& b) { b.clear(); }));
  EXPECT_TRUE(bad([](auto& b) { b[2].last_page = kMaxRegionBytes / kPageBytes; }));
  EXPECT_TRUE(bad([](auto& b) { b[2].first_page = b[2].last_page = UINT64_MAX - 1; }));
  EXPECT_TRUE(bad([](auto& b) { b[1].offset_bytes = 0; }));
  EXPECT_TRUE(bad([](auto& b) { b[1].offset_bytes = kMaxPackOffsetBytes; }));
  EXPECT_TRUE(bad([](auto& b) { b[1].entries = 1025; }));
}

TEST(RunRoot, PackNumbersThatWrapAroundAreRefused) {
  RunRoot root = samples::run_root();
  root.packs = {UINT64_MAX};
  Bytes raw = encode_run_root(root);
  RunRoot back;
  ASSERT_TRUE(decode_run_root(raw, back));
  raw[raw.size() - 11] = std::byte{2};  // one more pack, after the largest number
  raw.push_back(std::byte{0});
  EXPECT_FALSE(decode_run_root(raw, back));
}

TEST(RunRoot, HostileCountAllocatesNothing) {
  Bytes raw;
  ByteWriter w(raw);
  w.varint(1ULL << 60);
  raw.resize(1000);
  RunRoot back;
  EXPECT_FALSE(decode_run_root(raw, back));
}

}  // namespace
}  // namespace vellum::format
