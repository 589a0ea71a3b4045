#include "base/bytes/codec.hpp"
#include "vellum/error.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <tuple>

#include "base/bytes.hpp"

namespace vellum::base {
namespace {

using test::Bytes;
using test::compressible_bytes;
using test::random_bytes;

constexpr std::byte kGuard{0xA5};
constexpr Codec kLz4Words{Compression::lz4, Filter::words};
constexpr Codec kZstdWords{Compression::zstd, Filter::words};
constexpr Codec kLz4Strides{Compression::lz4, Filter::strides};
constexpr Codec kZstdStrides{Compression::zstd, Filter::strides};
constexpr Codec kLz4Fields{Compression::lz4, Filter::fields};
constexpr Codec kZstdFields{Compression::zstd, Filter::fields};

std::vector<Codec> all_codecs() {
  std::vector<Codec> out;
  for (const NamedCodec& each : codecs()) out.push_back(each.codec);
  return out;
}

Bytes compressed(Codec codec, const Bytes& raw, int level = 3) {
  Bytes out(compress_bound(codec, raw.size()));
  out.resize(Compressor().compress(codec, level, raw, out));
  return out;
}

// Decompresses into the middle of a guarded buffer, to detect writes outside.
bool decompresses(Codec codec, std::span<const std::byte> stored, std::size_t raw_size,
                  Bytes& raw) {
  constexpr std::size_t guard = 64;
  Bytes buffer(raw_size + 2 * guard, kGuard);
  const bool ok = Decompressor().decompress(codec, stored, {buffer.data() + guard, raw_size});
  const auto is_guard = [](std::byte byte) { return byte == kGuard; };
  EXPECT_TRUE(std::all_of(buffer.begin(), buffer.begin() + guard, is_guard));
  EXPECT_TRUE(std::all_of(buffer.end() - guard, buffer.end(), is_guard));
  raw.assign(buffer.begin() + guard, buffer.end() - guard);
  return ok;
}

class RoundTrip : public testing::TestWithParam<std::tuple<Codec, std::size_t>> {};

TEST_P(RoundTrip, GivesTheSameBytes) {
  const auto [codec, size] = GetParam();
  for (const Bytes& raw : {random_bytes(size, 1), compressible_bytes(size, 2), Bytes(size)}) {
    const Bytes stored = compressed(codec, raw);
    Bytes back;
    ASSERT_TRUE(decompresses(codec, stored, size, back));
    EXPECT_EQ(back, raw);
  }
}

class Part : public testing::TestWithParam<Codec> {};

TEST_P(Part, IsWhatLiesThere) {
  constexpr std::size_t kPage = 4096, kPages = 16;
  Decompressor decompressor;
  for (const Bytes& raw :
       {random_bytes(kPages * kPage, 1), compressible_bytes(kPages * kPage, 2)}) {
    const Bytes stored = compressed(GetParam(), raw);
    for (std::size_t first = 0; first < kPages; ++first) {
      for (const std::size_t pages : {std::size_t{1}, std::size_t{3}}) {
        if (first + pages > kPages) continue;
        Bytes part(pages * kPage);
        ASSERT_TRUE(
            decompressor.decompress_part(GetParam(), stored, raw.size(), first * kPage, part));
        ASSERT_EQ(std::memcmp(part.data(), raw.data() + first * kPage, part.size()), 0) << first;
      }
    }
    Bytes part(kPage);
    EXPECT_FALSE(decompressor.decompress_part(
        GetParam(), std::span(stored).first(stored.size() - 1), raw.size(), 0, part));
    EXPECT_FALSE(decompressor.decompress_part(GetParam(), stored, raw.size() + kPage, kPage, part));
  }
}

INSTANTIATE_TEST_SUITE_P(Codec, Part, testing::ValuesIn(all_codecs()));

INSTANTIATE_TEST_SUITE_P(Codec, RoundTrip,
                         testing::Combine(testing::ValuesIn(all_codecs()),
                                          testing::Values(0, 1, 7, 100, 4096, 65536, 300'001)));

// These bytes are in stores: a codec keeps its byte for ever.
TEST(Codec, NamesAndBytes) {
  const auto is = [](Codec codec, unsigned byte, const char* name) {
    EXPECT_STREQ(codec_name(codec), name);
    EXPECT_EQ(codec_byte(codec), byte);
    EXPECT_EQ(codec_from_byte(static_cast<std::uint8_t>(byte)), codec);
  };
  is(Compression::none, 0, "none");
  is(Compression::lz4, 1, "lz4");
  is(Compression::zstd, 2, "zstd");
  is(kLz4Words, 3, "lz4_words");
  is(kZstdWords, 4, "zstd_words");
  is(kLz4Strides, 5, "lz4_strides");
  is(kZstdStrides, 6, "zstd_strides");
  is(kLz4Fields, 7, "lz4_fields");
  is(kZstdFields, 8, "zstd_fields");
  EXPECT_EQ(codec_from_byte(static_cast<std::uint8_t>(codecs().size())), std::nullopt);
  EXPECT_EQ(codec_from_byte(255), std::nullopt);
}

TEST(Codec, CompressesWhatRepeats) {
  const Bytes raw = compressible_bytes(65536, 1);
  EXPECT_LT(compressed(Compression::lz4, raw).size(), raw.size() / 2);
  EXPECT_LT(compressed(Compression::zstd, raw).size(), raw.size() / 3);
}

TEST(Codec, LevelsOutsideTheRangeAreTakenAsItsEnds) {
  const Bytes raw = compressible_bytes(20'000, 1);
  EXPECT_EQ(compressed(Compression::zstd, raw, -5), compressed(Compression::zstd, raw, 1));
  EXPECT_EQ(compressed(Compression::zstd, raw, 99), compressed(Compression::zstd, raw, 19));
}

TEST(Codec, OneCompressorServesManyBlocks) {
  Compressor compressor;
  Decompressor decompressor;
  for (std::size_t size : {100u, 100'000u, 10u, 65'536u}) {
    for (const Codec codec : all_codecs()) {
      const Bytes raw = compressible_bytes(size, size);
      Bytes stored(compress_bound(codec, size));
      stored.resize(compressor.compress(codec, 1, raw, stored));
      Bytes back(size);
      ASSERT_TRUE(decompressor.decompress(codec, stored, back));
      EXPECT_EQ(back, raw);
    }
  }
}

TEST(Codec, OutputTooSmallGivesZeroAndStaysInside) {
  const Bytes raw = random_bytes(4096, 1);
  for (const Codec codec : all_codecs()) {
    for (std::size_t room : {0u, 1u, 8u, 2000u, 4095u}) {
      Bytes out(room + 64, kGuard);
      EXPECT_EQ(Compressor().compress(codec, 1, raw, std::span(out).first(room)), 0u);
      EXPECT_EQ(std::count(out.begin() + static_cast<std::ptrdiff_t>(room), out.end(), kGuard), 64);
    }
  }
}

class Hostile : public testing::TestWithParam<Codec> {};

TEST_P(Hostile, EveryTruncationIsRefused) {
  const Bytes raw = compressible_bytes(4096, 1);
  const Bytes stored = compressed(GetParam(), raw);
  Bytes back;
  for (std::size_t size = 0; size < stored.size(); ++size) {
    EXPECT_FALSE(decompresses(GetParam(), std::span(stored).first(size), raw.size(), back)) << size;
  }
}

TEST_P(Hostile, TrailingBytesAreRefused) {
  const Bytes raw = compressible_bytes(4096, 1);
  Bytes stored = compressed(GetParam(), raw);
  stored.push_back(std::byte{0});
  Bytes back;
  EXPECT_FALSE(decompresses(GetParam(), stored, raw.size(), back));
}

TEST_P(Hostile, AnotherSizeThanExpectedIsRefused) {
  const Bytes raw = compressible_bytes(4096, 1);
  const Bytes stored = compressed(GetParam(), raw);
  Bytes back;
  for (std::size_t size : {0u, 1u, 4095u, 4097u, 100'000u}) {
    EXPECT_FALSE(decompresses(GetParam(), stored, size, back)) << size;
  }
}

// A flipped bit may give other bytes (checksums detect that), but never a write outside.
TEST_P(Hostile, FlippedBitsStayInside) {
  const Bytes raw = compressible_bytes(4096, 1);
  Bytes stored = compressed(GetParam(), raw);
  Bytes back;
  for (std::size_t bit = 0; bit < stored.size() * 8; bit += 3) {
    const std::byte mask{static_cast<unsigned char>(1u << (bit % 8))};
    stored[bit / 8] ^= mask;
    decompresses(GetParam(), stored, raw.size(), back);
    stored[bit / 8] ^= mask;
  }
}

TEST_P(Hostile, RandomBytesStayInside) {
  Bytes back;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Bytes stored = random_bytes(1 + seed % 200, seed);
    if (GetParam() != Compression::none) decompresses(GetParam(), stored, 4096, back);
  }
}

INSTANTIATE_TEST_SUITE_P(Codec, Hostile, testing::ValuesIn(all_codecs()));

// 22-bit numbers in 8-byte words: no byte sequence repeats, but three planes have all data.
Bytes small_numbers(std::size_t bytes) {
  Bytes out(bytes);
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    const std::uint64_t number = random() >> 42;
    std::memcpy(out.data() + i, &number, sizeof number);
  }
  return out;
}

Bytes text(std::size_t bytes) {
  constexpr const char* kWords[] = {"page ", "block ", "delta ", "journal ", "branch ", "commit, "};
  std::string out;
  std::mt19937_64 random(1);
  while (out.size() < bytes) out += kWords[random() % std::size(kWords)];
  const auto all = std::as_bytes(std::span(out));
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

TEST(Choose, NumbersAreSplitAndTextIsNot) {
  Compressor compressor;
  const Bytes numbers = small_numbers(65536);
  EXPECT_EQ(compressor.choose(Compression::zstd, numbers).codec, kZstdWords);
  EXPECT_EQ(compressor.choose(Compression::lz4, numbers).codec, kLz4Words);
  EXPECT_EQ(compressor.choose(Compression::none, numbers).codec, Compression::none);
  EXPECT_LT(compressed(kZstdWords, numbers).size(), compressed(Compression::zstd, numbers).size());
  EXPECT_EQ(compressor.choose(Compression::zstd, text(65536)).codec, Compression::zstd);
  EXPECT_EQ(compressor.choose(Compression::zstd, random_bytes(65536, 1)).codec, Compression::zstd);
  EXPECT_EQ(compressor.choose(Compression::zstd, Bytes(100)).codec, Compression::zstd);
}

TEST(Choose, WhatIsTooLargeToSplitIsRefused) {
  const Bytes raw(kMaxFilteredBytes + 1);
  Bytes out(4096);
  EXPECT_EQ(Compressor().choose(Compression::zstd, raw).codec, Compression::zstd);
  EXPECT_EQ(Compressor().compress(kZstdWords, 1, raw, out), 0u);
  EXPECT_EQ(Compressor().compress(kZstdStrides, 1, raw, out), 0u);
  Bytes back(raw.size());
  const Bytes stored = compressed(Compression::zstd, raw);
  EXPECT_FALSE(Decompressor().decompress(kZstdWords, stored, back));
  EXPECT_FALSE(Decompressor().decompress(kZstdStrides, stored, back));
}

// Nodes as an ordered map allocates them: links that grow by the size of a node, a key, a value.
Bytes nodes(std::size_t bytes) {
  constexpr std::size_t kNodeWords = 6;
  Bytes out(bytes);
  for (std::size_t i = 0; i < bytes / 8; ++i) {
    const std::uint64_t node = i / kNodeWords, field = i % kNodeWords;
    // The links point back and forth, as in a tree: by themselves, they do not repeat.
    const std::uint64_t word = field == 5 ? 1 : field == 4 ? node * 7919 : (node * 3 + field) << 20;
    std::memcpy(out.data() + i * 8, &word, sizeof word);
  }
  return out;
}

TEST(Codec, OneThatIsUnknownIsRefused) {
  constexpr Codec kFilterOnly{Compression::none, Filter::words};
  for (const Codec codec : {Codec(static_cast<Compression>(9)), kFilterOnly}) {
    EXPECT_FALSE(codec_known(codec));
    EXPECT_STREQ(codec_name(codec), "unknown");
    Bytes raw(100), out(1000);
    EXPECT_THROW(Compressor().compress(codec, 1, raw, out), vellum::Error);
    EXPECT_FALSE(Decompressor().decompress(codec, out, raw));
  }
}

TEST(Choose, NodesAreTakenAsDifferences) {
  Compressor compressor;
  const Bytes raw = nodes(65536);
  EXPECT_EQ(compressor.choose(Compression::zstd, raw).codec, kZstdStrides);
  EXPECT_EQ(compressor.choose(Compression::lz4, raw).codec, kLz4Strides);
  const Bytes stored = compressed(kZstdStrides, raw);
  EXPECT_EQ(stored[0], std::byte{6});
  EXPECT_LT(stored.size(), compressed(Compression::zstd, raw).size() / 10);
}

// Elements of a list: two links that differ only in their low bytes, and a random number.
TEST(Choose, FieldsOfStructuresAreGathered) {
  Bytes raw = random_bytes(65536, 1);
  for (std::size_t at = 0; at + 24 <= raw.size(); at += 24) {
    const std::uint64_t chance = std::to_integer<std::uint64_t>(raw[at]);
    const std::uint64_t links[] = {0x1234567000 + chance * 8, 0xfedcba9000 - chance * chance};
    std::memcpy(raw.data() + at, links, sizeof links);
  }
  EXPECT_EQ(Compressor().choose(Compression::zstd, raw).codec, kZstdFields);
  const Bytes stored = compressed(kZstdFields, raw, 1);
  EXPECT_EQ(stored[0], std::byte{3});
  EXPECT_LT(stored.size(), compressed(Compression::zstd, raw, 1).size());
}

TEST(Strides, AStrideOutOfRangeIsRefused) {
  const Bytes raw = nodes(4096);
  for (const Codec codec : {kLz4Strides, kZstdStrides, kLz4Fields, kZstdFields}) {
    Bytes stored = compressed(codec, raw);
    Bytes back;
    for (const int stride : {0, 33, 255}) {
      stored[0] = static_cast<std::byte>(stride);
      EXPECT_FALSE(decompresses(codec, stored, raw.size(), back)) << stride;
    }
    EXPECT_FALSE(decompresses(codec, {}, raw.size(), back));
  }
}

TEST(Zstd, BombIsRefusedByItsDeclaredSize) {
  const Bytes stored = compressed(Compression::zstd, Bytes(64 << 20));
  EXPECT_LT(stored.size(), 10'000u);
  Bytes back;
  EXPECT_FALSE(decompresses(Compression::zstd, stored, 4096, back));
}

TEST(Zstd, BombThatLiesAboutItsSizeStaysInside) {
  Bytes stored = compressed(Compression::zstd, Bytes(64 << 20));
  // A single-segment frame of this size declares it in the 4 bytes after magic and descriptor.
  const std::uint32_t declared = 4096;
  ASSERT_EQ(ZSTD_getFrameContentSize(stored.data(), stored.size()), 64u << 20);
  for (std::size_t at = 5; at <= 6; ++at) {
    Bytes lying = stored;
    std::memcpy(lying.data() + at, &declared, sizeof declared);
    Bytes back;
    EXPECT_FALSE(decompresses(Compression::zstd, lying, 4096, back));
  }
}

TEST(Zstd, FrameWithoutDeclaredSizeIsRefused) {
  const Bytes raw = compressible_bytes(4096, 1);
  Bytes stored(compress_bound(Compression::zstd, raw.size()));
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  stored.resize(ZSTD_compress2(context, stored.data(), stored.size(), raw.data(), raw.size()));
  ZSTD_freeCCtx(context);
  Bytes back;
  EXPECT_FALSE(decompresses(Compression::zstd, stored, raw.size(), back));
}

TEST(Zstd, ChainOfFramesIsRefused) {
  const Bytes half = compressible_bytes(2048, 1);
  Bytes stored = compressed(Compression::zstd, half);
  stored.insert(stored.end(), stored.begin(), stored.end());
  Bytes back;
  EXPECT_FALSE(decompresses(Compression::zstd, stored, 4096, back));
}

TEST(Zstd, DecompressorWorksAfterARefusal) {
  const Bytes raw = compressible_bytes(4096, 1);
  Bytes stored = compressed(Compression::zstd, raw);
  Decompressor decompressor;
  Bytes back(raw.size());
  stored[stored.size() / 2] ^= std::byte{0xFF};
  decompressor.decompress(Compression::zstd, stored, back);
  stored[stored.size() / 2] ^= std::byte{0xFF};
  ASSERT_TRUE(decompressor.decompress(Compression::zstd, stored, back));
  EXPECT_EQ(back, raw);
}

}  // namespace
}  // namespace vellum::base
