#include "base/bytes/checksum.hpp"

#include <gtest/gtest.h>

#include "base/bytes.hpp"

namespace vellum::base {
namespace {

using test::Bytes;
using test::random_bytes;
using test::to_bytes;

// Data on disk depends on these values, which are those of the XXH3 specification's reference
// program.
TEST(Checksum, KnownValues) {
  EXPECT_EQ(checksum64({}), 0x2d06800538d394c2u);
  EXPECT_EQ(checksum64(to_bytes("abc")), 0x78af5f94892f3950u);
  EXPECT_EQ(checksum64(to_bytes("a")), 0xe6c632b61e964e1fu);
}

TEST(Checksum, SeedChangesTheValue) {
  const Bytes bytes = random_bytes(1000, 1);
  EXPECT_NE(checksum64(bytes, 1), checksum64(bytes, 2));
  EXPECT_EQ(checksum64(bytes, 0), checksum64(bytes));
}

TEST(Checksum, EveryFlippedBitChangesTheValue) {
  Bytes bytes = random_bytes(300, 2);
  const std::uint64_t before = checksum64(bytes, 7);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const std::byte mask{static_cast<unsigned char>(1u << (bit % 8))};
    bytes[bit / 8] ^= mask;
    EXPECT_NE(checksum64(bytes, 7), before) << bit;
    bytes[bit / 8] ^= mask;
  }
}

// Sizes around the algorithm's own borders: 16, 128, 240, one stripe block (1024), its buffer
// (256).
TEST(Checksum, TwoPiecesEqualTheWhole) {
  const Bytes bytes = random_bytes(5000, 3);
  for (std::size_t size : {0u, 1u, 16u, 17u, 128u, 129u, 240u, 241u, 256u, 257u, 1024u, 5000u}) {
    const std::span<const std::byte> whole(bytes.data(), size);
    for (std::size_t split : {std::size_t{0}, size / 3, size / 2, size}) {
      for (std::uint64_t seed : {0u, 12345u}) {
        EXPECT_EQ(checksum64(whole.first(split), whole.subspan(split), seed),
                  checksum64(whole, seed))
            << size << " split at " << split;
      }
    }
  }
}

}  // namespace
}  // namespace vellum::base
