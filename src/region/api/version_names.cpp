#include "region/api/version_names.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/parse_number.hpp"
#include "region/api/store_impl.hpp"
#include "store/catalog/commit_name.hpp"

namespace vellum::api {
namespace {

using std::chrono::system_clock;
using Moment = system_clock::time_point;

// "2026-11-24", "2026-11-24T10:30" or "2026-11-24T10:30:15".
std::optional<Moment> parse_date(std::string_view text, Edge edge) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() != 10 && text.size() != 16 && text.size() != kForm.size()) return std::nullopt;
  const bool is_end = edge == Edge::end;
  unsigned fields[6] = {0, 0, 0, is_end ? 23U : 0, is_end ? 59U : 0, is_end ? 59U : 0};
  std::size_t field = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (digit != (kForm[i] == 'd') || (!digit && text[i] != kForm[i])) return std::nullopt;
    if (!digit) {
      fields[++field] = 0;
      continue;
    }
    fields[field] = fields[field] * 10 + static_cast<unsigned>(text[i] - '0');
  }
  using namespace std::chrono;
  const year_month_day day{year(static_cast<int>(fields[0])), month(fields[1]),
                           std::chrono::day(fields[2])};
  // The range of nanoseconds in 64 bits: up to April 2262.
  if (fields[0] < 1900 || fields[0] > 2261) return std::nullopt;
  if (!day.ok() || fields[3] > 23 || fields[4] > 59 || fields[5] > 59) return std::nullopt;
  // The edge of the second, and of a minute or day without a finer time.
  return sys_days(day) + hours(fields[3]) + minutes(fields[4]) + seconds(fields[5]) +
         milliseconds(is_end ? 999 : 0);
}

// "3 days ago", "3days", "90min".
std::optional<std::chrono::seconds> parse_ago(std::string_view text) {
  if (text.ends_with(" ago")) text.remove_suffix(4);
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
  const auto count = base::parse_number<std::uint32_t>(text.substr(0, digits));
  if (!count) return std::nullopt;
  std::string_view unit = text.substr(digits);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  struct Unit {
    std::string_view name;
    std::uint32_t seconds;
  };
  constexpr Unit kUnits[] = {{"s", 1},       {"second", 1},    {"min", 60},   {"minute", 60},
                             {"h", 3600},    {"hour", 3600},   {"d", 86'400}, {"day", 86'400},
                             {"w", 604'800}, {"week", 604'800}};
  for (const Unit& known : kUnits) {
    const bool plural = known.name.size() > 2 && unit.ends_with('s') &&
                        unit.substr(0, unit.size() - 1) == known.name;
    if (unit != known.name && !plural) continue;
    const std::chrono::seconds ago(std::uint64_t{*count} * known.seconds);
    if (ago <= std::chrono::years(100)) return ago;
  }
  return std::nullopt;
}

// Parses the forms in the header, at the time `now`; nullopt: none of them.
std::optional<Moment> parse_moment(std::string_view text, Moment now, Edge edge) {
  if (text == "yesterday") return now - std::chrono::days(1);
  if (const auto ago = parse_ago(text)) return now - *ago;
  return parse_date(text, edge);
}

const VersionInfo* newest_until(const std::vector<VersionInfo>& versions, Moment moment,
                                Newest newest) {
  const auto key = [newest](const VersionInfo& v) {
    return std::pair(newest == Newest::by_time ? v.created_at : Moment{}, v.order);
  };
  const VersionInfo* found = nullptr;
  for (const VersionInfo& v : versions) {
    if (v.is_branch || v.created_at > moment) continue;
    if (found == nullptr || key(v) > key(*found)) found = &v;
  }
  return found;
}

std::string utc_text(Moment moment) {
  using namespace std::chrono;
  const auto day = floor<days>(moment);
  const year_month_day date(day);
  const hh_mm_ss time(floor<seconds>(moment - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

// Newest first, the answer is the first one that is old enough: mostly one of the newest.
std::string at_time(const Store& store, const std::string& name, std::string_view time) {
  if (!name.empty()) {
    return newest_at(line_of(store, name), time, fmt::format(" on the line of '{}'", name),
                     Newest::by_order);
  }
  const Moment moment = moment_of(time, Edge::end);
  for (const VersionInfo& v : newest_snapshots(store, kNewestFast)) {
    if (v.created_at <= moment) return v.name;
  }
  return newest_at(store.versions(), time, "", Newest::by_order);
}

std::string latest(const Store& store) {
  const auto newest = newest_snapshots(store, 1);
  if (newest.empty())
    fail(Errc::not_found, "the store has no snapshot yet, so 'latest' names none");
  return newest.front().name;
}

std::string parent_of(const Store& store, const std::string& name, std::uint32_t steps) {
  std::string at = name;
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::string parent = store.version(at).parent;
    if (parent.empty()) {
      fail(Errc::not_found, "'{}' has {} snapshot{} before it on its line, so there is no '{}~{}'",
           name, step, step == 1 ? "" : "s", name, steps);
    }
    if (!store.contains(parent)) {
      fail(Errc::not_found, "'{}~{}' goes back to '{}', which has been removed", name, step + 1,
           parent);
    }
    at = parent;
  }
  return at;
}

}  // namespace

void sort_newest_first(std::vector<VersionInfo>& versions) {
  std::sort(versions.begin(), versions.end(), [](const VersionInfo& a, const VersionInfo& b) {
    return std::tie(b.is_branch, b.order, a.name) < std::tie(a.is_branch, a.order, b.name);
  });
}

Moment moment_of(std::string_view time, Edge edge) {
  if (const auto moment = parse_moment(time, system_clock::now(), edge)) return *moment;
  fail(Errc::invalid_argument,
       "'{}' is no time: write 2026-11-24, 2026-11-24T10:30, yesterday, or '3 days ago'", time);
}

std::string newest_at(const std::vector<VersionInfo>& versions, std::string_view time,
                      const std::string& where, Newest newest) {
  const Moment moment = moment_of(time, Edge::end);
  const VersionInfo* found = newest_until(versions, moment, newest);
  if (found == nullptr) {
    fail(Errc::not_found, "no snapshot{} was created at {} or before", where, utc_text(moment));
  }
  return found->name;
}

std::string resolve_version(const Store& store, const std::string& text) {
  if (text.find_first_of("~{") == std::string::npos && text != "latest") return text;
  const std::size_t tilde = text.find('~');
  std::string name = text.substr(0, tilde);
  if (const std::size_t at = name.find("@{"); at != std::string::npos && name.back() == '}') {
    name = at_time(store, name.substr(0, at),
                   std::string_view(name).substr(at + 2, name.size() - at - 3));
  } else if (name == "latest") {
    if (!store.contains(name)) name = latest(store);
  }
  if (tilde == std::string::npos) return name;
  const std::string_view steps = std::string_view(text).substr(tilde + 1);
  const auto count = steps.empty() ? 1 : base::parse_number<std::uint32_t>(steps);
  if (!count) {
    fail(Errc::invalid_argument, "'{}': ~ must be followed by the number of snapshots to go back",
         text);
  }
  return parent_of(store, name, *count);
}

std::vector<VersionInfo> commits_of(const Store& store, const std::string& branch) {
  const VersionInfo head = store.version(branch);
  std::vector<VersionInfo> out;
  if (!head.is_branch) return out;
  for (const auto& commit : store::unnamed_commits(*StoreAccess::core_of(store), branch)) {
    VersionInfo info = head;
    info.is_branch = false;
    info.name = store::text_of(commit.name);
    info.sequence = commit.name.sequence;
    info.committed_at = info.created_at = base::time_point_of(commit.info.time_ns);
    info.message = commit.info.message;
    info.region_bytes = commit.info.region_bytes;
    info.file_bytes = commit.info.file_bytes.value_or(commit.info.region_bytes);
    info.pages_changed = commit.pages;
    info.bytes_added = 0;
    out.push_back(std::move(info));
  }
  return out;
}

bool is_commit(const VersionInfo& version) { return version.name.find('@') != std::string::npos; }

std::vector<VersionInfo> line_of(const Store& store, const std::string& name) {
  return line_of(store.versions(), store.version(name));
}

std::vector<VersionInfo> line_of(std::vector<VersionInfo> versions, const VersionInfo& last) {
  std::unordered_map<std::string, VersionInfo> snapshots;
  for (VersionInfo& v : versions) {
    if (!v.is_branch) snapshots.emplace(v.name, std::move(v));
  }
  std::set<std::string> before;
  std::string parent = last.parent;
  // insert() fails on a cycle, which only a corrupted store has.
  while (snapshots.contains(parent) && before.insert(parent).second) {
    parent = snapshots.at(parent).parent;
  }
  before.erase(last.name);
  std::vector<VersionInfo> line{last};
  for (const auto& [snapshot, v] : snapshots) {
    if (before.contains(snapshot) || (last.is_branch && v.branch == last.name)) line.push_back(v);
  }
  sort_newest_first(line);
  return line;
}

}  // namespace vellum::api
