// cli/options/arguments.cpp: sizes, names, and the rules of retention.
#include "cli/options/arguments.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::cli {
namespace {

constexpr std::size_t kMaxNameBytes = 200;

// The power of two for a unit, or nothing. "KB" is refused: it may mean 1000 or 1024.
std::optional<unsigned> unit_shift(std::string unit) {
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (unit.empty() || unit == "b") {
    return 0;
  }
  constexpr std::string_view kPrefixes = "kmgt";
  const std::size_t prefix = kPrefixes.find(unit[0]);
  const bool plain = unit.size() == 1 || unit.substr(1) == "i" || unit.substr(1) == "ib";
  if (prefix == std::string_view::npos || !plain) {
    return std::nullopt;
  }
  return static_cast<unsigned>(prefix + 1) * 10;
}

}  // namespace

std::uint64_t parse_size(const std::string& option, const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const bool is_hex = text.starts_with("0x") && text.size() > 2;
  const auto [stop, problem] =
      std::from_chars(text.data() + (is_hex ? 2 : 0), end, number, is_hex ? 16 : 10);
  const std::optional<unsigned> shift = unit_shift(std::string(stop, end));
  if (problem == std::errc::invalid_argument || !shift) {
    fail(Errc::invalid_argument,
         "{}: '{}' is not a size: give bytes, or a number with K, M, G or T "
         "(powers of 1024)",
         option, text);
  }
  if (problem == std::errc::result_out_of_range ||
      number > (std::numeric_limits<std::uint64_t>::max() >> *shift)) {
    fail(Errc::invalid_argument, "{}: {} is too large", option, text);
  }
  return number << *shift;
}

bool is_name_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || c == '.' || c == '_' || c == '+' || c == '-';
}

bool is_good_name(const std::string& name) noexcept {
  return !name.empty() && name.size() <= kMaxNameBytes && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), is_name_byte);
}

void require_good_name(const std::string& name) {
  if (is_good_name(name)) return;
  fail(Errc::invalid_argument,
       "'{}' cannot be a name: a name is 1 to {} bytes of letters, digits and "
       ". _ + - (or UTF-8), not starting with . or -",
       name, kMaxNameBytes);
}

void require_good_message(const std::string& message) {
  constexpr std::size_t kMaxMessageBytes = 4096;
  if (message.size() > kMaxMessageBytes) {
    fail(Errc::invalid_argument, "--message: the message has {} bytes, and may have at most {}",
         message.size(), kMaxMessageBytes);
  }
}

void add_retention_options(CLI::App& command, RetentionPolicy& policy) {
  command.add_option("--keep-last", policy.keep_last, "Keep the newest N snapshots")
      ->type_name("N");
  command
      .add_option("--keep-daily", policy.keep_daily, "Keep the newest snapshot of each of N days")
      ->type_name("N");
  command
      .add_option("--keep-weekly", policy.keep_weekly,
                  "Keep the newest snapshot of each of N weeks")
      ->type_name("N");
  command
      .add_option("--keep-monthly", policy.keep_monthly,
                  "Keep the newest snapshot of each of N months")
      ->type_name("N");
  command
      .add_option("--keep-yearly", policy.keep_yearly,
                  "Keep the newest snapshot of each of N years")
      ->type_name("N");
}

bool has_rule(const RetentionPolicy& policy) {
  return policy.keep_last != 0 || policy.keep_daily != 0 || policy.keep_weekly != 0 ||
         policy.keep_monthly != 0 || policy.keep_yearly != 0;
}

}  // namespace vellum::cli
