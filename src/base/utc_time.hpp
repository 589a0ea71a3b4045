// base/utc_time.hpp: points in time as text, as RFC 3339 has them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace vellum::base {

// "2026-11-24T10:30:15Z", "2026-11-24T10:30:15.250Z": UTC, with up to nine decimals; from 1900 on. A
// time after 2261 becomes the last day of that year. nullopt: another text.
std::optional<std::chrono::system_clock::time_point> parse_utc_time(std::string_view text);

// The same, in whole seconds: parts of a second are cut off.
std::string utc_seconds(std::chrono::system_clock::time_point time);
// The same, with nine decimals.
std::string utc_nanoseconds(std::chrono::system_clock::time_point time);

}  // namespace vellum::base
