#include "base/utc_time.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"

namespace vellum::base {
namespace {

using Moment = std::chrono::system_clock::time_point;
constexpr unsigned kLastYear = 2261;  // whose nanoseconds fit into 64 bits
constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";

// The decimals behind the point, as nanoseconds.
std::optional<std::chrono::nanoseconds> parse_decimals(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  std::int64_t out = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    const char c = i < text.size() ? text[i] : '0';
    if (c < '0' || c > '9') return std::nullopt;
    out = out * 10 + (c - '0');
  }
  return std::chrono::nanoseconds(out);
}

}  // namespace

std::optional<Moment> parse_utc_time(std::string_view text) {
  if (text.size() <= kForm.size() || text.back() != 'Z') return std::nullopt;
  unsigned fields[6] = {};
  std::size_t field = 0;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (is_digit != (kForm[i] == 'd') || (!is_digit && text[i] != kForm[i])) return std::nullopt;
    if (is_digit) {
      fields[field] = fields[field] * 10 + static_cast<unsigned>(text[i] - '0');
    } else {
      ++field;
    }
  }
  std::chrono::nanoseconds decimals{0};
  const std::string_view rest = text.substr(kForm.size(), text.size() - kForm.size() - 1);
  if (!rest.empty()) {
    const auto parsed = rest.front() == '.' ? parse_decimals(rest.substr(1)) : std::nullopt;
    if (!parsed.has_value()) return std::nullopt;
    decimals = *parsed;
  }
  using namespace std::chrono;
  const year_month_day day{year(static_cast<int>(fields[0])), month(fields[1]),
                           std::chrono::day(fields[2])};
  if (fields[0] < 1900 || !day.ok()) return std::nullopt;
  if (fields[3] > 23 || fields[4] > 59 || fields[5] > 59) return std::nullopt;
  if (fields[0] > kLastYear) return Moment(sys_days(year(kLastYear) / December / 31));
  return Moment(duration_cast<system_clock::duration>(sys_days(day).time_since_epoch() +
                                                      hours(fields[3]) + minutes(fields[4]) +
                                                      seconds(fields[5]) + decimals));
}

std::string utc_seconds(Moment moment) {
  using namespace std::chrono;
  const auto day = floor<days>(moment);
  const year_month_day date(day);
  const hh_mm_ss time(floor<seconds>(moment - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

std::string utc_nanoseconds(Moment moment) {
  std::string out = utc_seconds(moment);
  out.pop_back();
  const auto whole = std::chrono::floor<std::chrono::seconds>(moment);
  return fmt::format("{}.{:09}Z", out,
                     std::chrono::duration_cast<std::chrono::nanoseconds>(moment - whole).count());
}

}  // namespace vellum::base
