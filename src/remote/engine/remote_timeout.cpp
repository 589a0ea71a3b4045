#include "remote/engine/remote_timeout.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/fail.hpp"

namespace vellum::remote {
namespace {

constexpr const char* kVariable = "VELLUM_REMOTE_WAIT_S";
constexpr std::chrono::milliseconds kDefaultWait{60'000};
constexpr double kMaxSeconds = 24.0 * 3600 * 365;

// Digits with at most one decimal point.
std::optional<double> seconds_in(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos)
    return std::nullopt;
  double seconds = 0;
  const auto [at, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (at != text.data() + text.size()) return std::nullopt;
  return problem == std::errc() ? std::optional(seconds) : std::nullopt;
}

}  // namespace

std::chrono::milliseconds remote_timeout(const std::optional<std::chrono::milliseconds>& chosen) {
  std::chrono::milliseconds out = kDefaultWait;
  const char* const text = std::getenv(kVariable);
  if (chosen.has_value()) {
    out = *chosen;
  } else if (text != nullptr) {
    const auto seconds = seconds_in(text);
    if (!seconds.has_value()) {
      fail(Errc::invalid_argument, "{}='{}': not a number of seconds", kVariable, text);
    }
    out = std::chrono::milliseconds(
        static_cast<std::int64_t>(std::min(*seconds, kMaxSeconds) * 1000));
  }
  if (out.count() < 1) {
    fail(Errc::invalid_argument, "the timeout for a remote must be at least a millisecond");
  }
  return std::min(out, std::chrono::milliseconds(static_cast<std::int64_t>(kMaxSeconds * 1000)));
}

}  // namespace vellum::remote
