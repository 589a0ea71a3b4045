#include "format/version.hpp"

#include <gtest/gtest.h>

#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;

bool accepted(const Version& v) {
  Version back;
  return decode_version(encode_version(v), back);
}

TEST(Version, RoundTrip) {
  Version back;
  ASSERT_TRUE(decode_version(encode_version(samples::version()), back));
  EXPECT_EQ(back, samples::version());
  ASSERT_TRUE(decode_version(encode_version(Version{}), back));
  EXPECT_EQ(back, Version{});
}

TEST(Version, TheFileSizeIsAtTheEndAndMayBeMissing) {
  const Bytes without = encode_version(samples::version());
  for (const std::uint64_t size : {0ULL, 1ULL, 4097ULL, (1ULL << 30) - 1, 1ULL << 30}) {
    Version v = samples::version();
    v.file_bytes = size;
    const Bytes with = encode_version(v);
    Version back;
    ASSERT_TRUE(decode_version(with, back)) << size;
    EXPECT_EQ(back.file_bytes, size);
    EXPECT_EQ(back, v);
    ASSERT_GT(with.size(), without.size());
    EXPECT_TRUE(std::equal(without.begin(), without.end(), with.begin()));
    for (std::size_t n = 0; n < with.size(); ++n) {
      // Without the field, it is a version of an earlier format.
      const bool accepted = decode_version(std::span<const std::byte>(with).first(n), back);
      EXPECT_EQ(accepted, n == without.size()) << n;
    }
    Bytes longer = with;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode_version(longer, back));
  }
}

TEST(Version, TheLargestFits) {
  Version v = samples::version();
  v.branch_id = v.sequence = v.pages_changed = v.bytes_added = UINT64_MAX;
  v.time_ns = INT64_MIN;
  v.region_bytes = kMaxRegionBytes;
  v.base_address = UINT64_MAX - kMaxRegionBytes - kPageBytes + 1;
  v.message.assign(kMaxMessageBytes, 'm');
  v.parent.assign(kMaxNameBytes, 'p');
  v.file_bytes = kMaxRegionBytes;
  v.active_pack = UINT64_MAX;
  v.active_pack_end_bytes = kMaxPackOffsetBytes;
  v.next_pack_number = 1ULL << 32;
  v.runs.assign(kMaxRunsPerVersion,
                {{UINT64_MAX, kMaxPackOffsetBytes - 8, UINT32_MAX}, 1ULL << 40});
  EXPECT_LE(encode_version(v).size(), kMaxVersionBytes);
  EXPECT_TRUE(accepted(v));
}

TEST(Version, EveryBoundIsChecked) {
  const auto refused = [](auto change) {
    Version v = samples::version();
    change(v);
    return !accepted(v);
  };
  EXPECT_TRUE(refused([](Version& v) { v.region_bytes = 4097; }));
  EXPECT_TRUE(refused([](Version& v) { v.region_bytes = kMaxRegionBytes + kPageBytes; }));
  EXPECT_TRUE(refused([](Version& v) { v.file_bytes = v.region_bytes + 1; }));
  EXPECT_TRUE(refused([](Version& v) { v.file_bytes = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Version& v) { v.base_address = 1; }));
  EXPECT_TRUE(refused([](Version& v) { v.base_address = ~std::uint64_t{4095}; }));
  EXPECT_TRUE(refused([](Version& v) { v.parent = "../escape"; }));
  EXPECT_TRUE(refused([](Version& v) { v.active_pack_end_bytes = 63; }));
  EXPECT_TRUE(refused([](Version& v) { v.active_pack_end_bytes = 4097; }));
  EXPECT_TRUE(refused([](Version& v) { v.active_pack_end_bytes = kMaxPackOffsetBytes + 8; }));
  EXPECT_TRUE(refused([](Version& v) { v.active_pack = 0; }));
  EXPECT_TRUE(refused([](Version& v) { v.next_pack_number = 0; }));
  EXPECT_TRUE(refused([](Version& v) { v.next_pack_number = (1ULL << 32) + 1; }));
  EXPECT_TRUE(refused([](Version& v) { v.runs[0].root.pack = 0; }));
  EXPECT_TRUE(refused([](Version& v) { v.runs[0].root.offset_bytes = 8; }));
  EXPECT_TRUE(refused([](Version& v) { v.runs[0].root.offset_bytes = 2049; }));
  EXPECT_TRUE(refused([](Version& v) { v.runs[0].entries = 0; }));
  EXPECT_TRUE(refused([](Version& v) { v.runs[1].entries = UINT64_MAX; }));
}

TEST(Version, TruncatedOrExtendedIsRefused) {
  const Bytes good = encode_version(samples::version());
  Version back;
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(decode_version(std::span<const std::byte>(good).first(n), back)) << n;
  }
  Bytes longer = good;
  longer.resize(good.size() + 2);  // one byte more is the size of an empty file
  EXPECT_FALSE(decode_version(longer, back));
}

TEST(SnapshotRef, RoundTrip) {
  SnapshotRef back;
  const Bytes bytes = encode_snapshot_ref(samples::snapshot_ref(), samples::store_id());
  ASSERT_EQ(decode_snapshot_ref(bytes, samples::store_id(), back), nullptr);
  EXPECT_EQ(back, samples::snapshot_ref());
}

TEST(SnapshotRef, SaysWhatIsWrong) {
  const Bytes good = encode_snapshot_ref(samples::snapshot_ref(), samples::store_id());
  SnapshotRef back;
  const auto problem = [&](const Bytes& b) {
    return std::string(decode_snapshot_ref(b, samples::store_id(), back));
  };
  EXPECT_EQ(problem({}), "not a snapshot ref");
  EXPECT_EQ(problem(Bytes(good.begin(), good.end() - 1)), "truncated");
  EXPECT_EQ(problem(Bytes(good.begin(), good.begin() + 20)), "truncated");
  EXPECT_EQ(problem(Bytes(kMaxSnapshotRefBytes + 1)), "larger than any snapshot ref");
  Bytes changed = good;
  changed[40] ^= std::byte{1};
  EXPECT_EQ(problem(changed), "checksum mismatch");
  changed = good;
  changed[8] = std::byte{9};
  EXPECT_EQ(problem(changed), "checksum mismatch");
  EXPECT_EQ(problem(samples::sealed(changed)), "written by a newer format");
  Uuid other = samples::store_id();
  other[3] = std::byte{0};
  EXPECT_STREQ(decode_snapshot_ref(good, other, back), "belongs to another store");
  SnapshotRef bad = samples::snapshot_ref();
  bad.name = "a/b";
  EXPECT_EQ(problem(encode_snapshot_ref(bad, samples::store_id())), "malformed snapshot name");
  bad = samples::snapshot_ref();
  bad.branch = "..";
  EXPECT_EQ(problem(encode_snapshot_ref(bad, samples::store_id())), "malformed branch name");
  bad = samples::snapshot_ref();
  bad.version.region_bytes = 1;
  EXPECT_EQ(problem(encode_snapshot_ref(bad, samples::store_id())), "malformed version");
}

// A length that ends before the fields must not let the reader pass the end.
TEST(SnapshotRef, NothingButAHeader) {
  Bytes bytes = encode_snapshot_ref(samples::snapshot_ref(), samples::store_id());
  bytes.resize(32);
  const std::uint32_t length = 32;
  std::memcpy(bytes.data() + 12, &length, 4);
  SnapshotRef back;
  EXPECT_NE(decode_snapshot_ref(bytes, samples::store_id(), back), nullptr);
}

}  // namespace
}  // namespace vellum::format
