#include "format/wire/superblock.hpp"

#include <gtest/gtest.h>

#include "base/bytes/checksum.hpp"
#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;

// Writes a right checksum: only the range checks can then refuse the bytes.
void reseal(Bytes& bytes) {
  const std::uint64_t sum =
      base::checksum64(std::span<const std::byte>(bytes).first(bytes.size() - 8), 0);
  std::memcpy(bytes.data() + bytes.size() - 8, &sum, 8);
}

SuperblockStatus status_of(const Bytes& bytes) {
  Superblock out;
  return decode_superblock(bytes, out);
}

TEST(Superblock, RoundTrip) {
  const Superblock sb = samples::superblock();
  Superblock back;
  ASSERT_EQ(decode_superblock(encode_superblock(sb), back), SuperblockStatus::ok);
  EXPECT_EQ(back, sb);
}

TEST(Superblock, DefaultsAreValid) {
  EXPECT_EQ(status_of(encode_superblock({})), SuperblockStatus::ok);
}

TEST(Superblock, OtherFilesAreNotAStore) {
  EXPECT_EQ(status_of({}), SuperblockStatus::not_a_store);
  EXPECT_EQ(status_of(samples::text("VELLUM")), SuperblockStatus::not_a_store);
  // A transfer that converts line ends breaks the magic. This is the magic's purpose.
  Bytes unix_lines = encode_superblock(samples::superblock());
  unix_lines.erase(unix_lines.begin() + 6);
  EXPECT_EQ(status_of(unix_lines), SuperblockStatus::not_a_store);
}

TEST(Superblock, NewerFormatIsToldApartFromDamage) {
  Bytes newer = encode_superblock(samples::superblock());
  newer[8] = std::byte{2};
  EXPECT_EQ(status_of(newer), SuperblockStatus::newer_format);
  newer.resize(12);
  EXPECT_EQ(status_of(newer), SuperblockStatus::newer_format);
}

TEST(Superblock, TruncatedExtendedOrFlippedIsCorrupted) {
  const Bytes good = encode_superblock(samples::superblock());
  for (std::size_t n = 8; n < good.size(); ++n) {
    EXPECT_EQ(status_of(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n))),
              SuperblockStatus::corrupted);
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  EXPECT_EQ(status_of(longer), SuperblockStatus::corrupted);
}

TEST(Superblock, EveryRangeIsChecked) {
  const auto refused = [](auto change) {
    Superblock sb = samples::superblock();
    change(sb);
    return status_of(encode_superblock(sb)) == SuperblockStatus::corrupted;
  };
  EXPECT_TRUE(refused([](Superblock& s) { s.block_bytes = 2048; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.block_bytes = 256u << 20; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.block_bytes = 5000; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.block_bytes = 0; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.compression_level = 20; }));
  EXPECT_TRUE(refused([](Superblock& s) {
    s.compression = base::Compression::zstd;
    s.compression_level = 0;
  }));
  EXPECT_TRUE(refused([](Superblock& s) { s.pack_bytes = 0; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.pack_bytes = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.journal_half_bytes = 4096; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.journal_half_bytes = 0x123001; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.journal_half_bytes = 0xfffff000; }));
}

// A block may have a filter, but a store has only a compression.
TEST(Superblock, OnlyACodecWithoutAFilterIsAccepted) {
  constexpr std::size_t kCodecAt = 44;
  for (unsigned byte = 0; byte < 256; ++byte) {
    Bytes bytes = encode_superblock(samples::superblock());
    bytes[kCodecAt] = static_cast<std::byte>(byte);
    reseal(bytes);
    const auto codec = base::codec_from_byte(static_cast<std::uint8_t>(byte));
    const bool good = codec.has_value() && codec->filter == base::Filter::none;
    EXPECT_EQ(status_of(bytes), good ? SuperblockStatus::ok : SuperblockStatus::corrupted) << byte;
  }
}

TEST(Superblock, FlagsComeBackEachOnItsOwn) {
  for (int bits = 0; bits < 32; ++bits) {
    Superblock sb = samples::superblock();
    sb.grow_blocks = (bits & 1) == 0;
    sb.filters = (bits & 2) == 0;
    sb.dedup = (bits & 4) == 0;
    sb.deltas = (bits & 8) == 0;
    sb.sha256 = (bits & 16) != 0;
    const Bytes bytes = encode_superblock(sb);
    EXPECT_EQ(bytes[46], static_cast<std::byte>(bits));
    Superblock back;
    ASSERT_EQ(decode_superblock(bytes, back), SuperblockStatus::ok);
    EXPECT_EQ(back, sb);
  }
}

TEST(Superblock, ReservedBytesAndUnknownFlagsMustBeZero) {
  for (const std::size_t at : {46u, 47u, 60u, 63u}) {
    Bytes bytes = encode_superblock(samples::superblock());
    bytes[at] = std::byte{32};
    reseal(bytes);
    EXPECT_EQ(status_of(bytes), SuperblockStatus::corrupted) << at;
  }
}

TEST(Names, GoodOnes) {
  for (const char* name : {"main", "a", "v1.2.3", "x_y+z-1", "\xc3\xa9t\xc3\xa9",
                           "\xe6\x97\xa5\xe6\x9c\xac", "0..9"}) {
    EXPECT_EQ(name_problem(name), nullptr) << name;
  }
  EXPECT_EQ(name_problem(std::string(kMaxNameBytes, 'a')), nullptr);
}

TEST(Names, BadOnes) {
  using std::string_literals::operator""s;
  const std::string bad[] = {""s,
                             "."s,
                             ".."s,
                             ".hidden"s,
                             "-rf"s,
                             "a/b"s,
                             "/"s,
                             "a b"s,
                             "a\nb"s,
                             "a\0b"s,
                             "a\x7f"s,
                             "a\\b"s,
                             "a:b"s,
                             "a*"s,
                             "~"s,
                             "\xc0\xaf"s,          // overlong '/'
                             "\xe0\x80\xaf"s,      // overlong '/'
                             "\xed\xa0\x80"s,      // surrogate
                             "\xf4\x90\x80\x80"s,  // beyond U+10FFFF
                             "\xc3"s,
                             "a\xe6\x97"s,
                             "\x80"s,
                             "\xff"s,
                             "a\xc2\xa0"s,      // no-break space
                             "a\xc2\x85"s,      // C1 control
                             "a\xe2\x80\xae"s,  // right-to-left override
                             "a\xef\xbb\xbf"s,  // byte order mark
                             std::string(kMaxNameBytes + 1, 'a')};
  for (const auto& name : bad) EXPECT_NE(name_problem(name), nullptr) << name;
}

TEST(ChecksumSeed, DependsOnTheStore) {
  Uuid other = samples::store_id();
  other[0] ^= std::byte{1};
  EXPECT_NE(checksum_seed(other), samples::seed());
  EXPECT_EQ(checksum_seed(samples::store_id()), samples::seed());
}

}  // namespace
}  // namespace vellum::format
