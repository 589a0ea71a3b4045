#include "base/utc_time.hpp"

#include <gtest/gtest.h>

namespace vellum::base {
namespace {

TEST(UtcTime, IsWhatItWasWritten) {
  for (const char* text : {"2026-11-24T10:30:15Z", "1900-01-01T00:00:00Z", "2261-12-31T23:59:59Z",
                           "2024-02-29T12:00:00Z"}) {
    const auto time = parse_utc_time(text);
    ASSERT_TRUE(time.has_value()) << text;
    EXPECT_EQ(utc_seconds(*time), text);
    EXPECT_EQ(parse_utc_time(utc_nanoseconds(*time)), time);
  }
  const auto time = parse_utc_time("2026-11-24T10:30:15.25Z");
  EXPECT_EQ(utc_seconds(*time), "2026-11-24T10:30:15Z");
  EXPECT_EQ(utc_nanoseconds(*time), "2026-11-24T10:30:15.250000000Z");
  EXPECT_EQ(*time - *parse_utc_time("2026-11-24T10:30:15Z"), std::chrono::milliseconds(250));
}

// No lock is longer than such a one, whoever has set it.
TEST(UtcTime, LaterYearsBecomeTheLastOne) {
  for (const char* text :
       {"2262-01-01T00:00:00Z", "3000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}) {
    const auto time = parse_utc_time(text);
    ASSERT_TRUE(time.has_value()) << text;
    EXPECT_EQ(utc_seconds(*time), "2261-12-31T00:00:00Z");
  }
  EXPECT_FALSE(parse_utc_time("3000-02-29T00:00:00Z").has_value());
}

TEST(UtcTime, OtherTextIsNone) {
  for (const char* text :
       {"", "Z", "2026-11-24", "2026-11-24T10:30:15", "2026-11-24 10:30:15Z",
        "2026-13-24T10:30:15Z", "2026-02-29T10:30:15Z", "2026-11-24T24:00:00Z",
        "2026-11-24T10:60:00Z", "2026-11-24T10:30:60Z", "2026-11-24T10:30:15.Z",
        "2026-11-24T10:30:15.1234567890Z", "2026-11-24T10:30:15.1x3Z", "2026-11-24T10:30:15+01:00Z",
        "1899-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "x026-11-24T10:30:15Z"}) {
    EXPECT_FALSE(parse_utc_time(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace vellum::base
