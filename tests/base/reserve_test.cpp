#include "base/memory/reserve.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "base/expect_error.hpp"

namespace vellum::base {
namespace {

constexpr std::size_t kTebibyte = std::size_t{1} << 40;

TEST(Reservation, ATebibyteIsZeroAndWritableWhereTouched) {
  const Reservation reservation(kTebibyte);
  ASSERT_EQ(reservation.size(), kTebibyte);
  ASSERT_EQ(reservation.bytes().size(), kTebibyte);
  for (std::size_t at : {std::size_t{0}, kTebibyte / 2, kTebibyte - 1}) {
    EXPECT_EQ(reservation.data()[at], std::byte{0});
    reservation.data()[at] = std::byte{1};
    EXPECT_EQ(reservation.data()[at], std::byte{1});
  }
}

TEST(Reservation, EmptyOnes) {
  const Reservation none;
  EXPECT_EQ(none.data(), nullptr);
  const Reservation zero(0);
  EXPECT_EQ(zero.size(), 0u);
}

TEST(Reservation, MovesTakeTheMemoryAlong) {
  Reservation first(1 << 20);
  std::byte* data = first.data();
  data[5] = std::byte{42};
  Reservation second(std::move(first));
  EXPECT_EQ(second.data(), data);
  Reservation third(4096);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), std::size_t{1} << 20);
  EXPECT_EQ(third.data()[5], std::byte{42});
}

TEST(Reservation, MoreThanTheAddressSpaceIsRefused) {
  EXPECT_ERRC(Reservation(std::numeric_limits<std::size_t>::max() / 2), Errc::out_of_memory);
}

}  // namespace
}  // namespace vellum::base
