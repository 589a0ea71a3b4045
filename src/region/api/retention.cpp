// Retention by age (vellum/retention.hpp).
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <vellum/retention.hpp>

#include "base/bytes/checksum.hpp"
#include "base/fail.hpp"
#include "base/parse_number.hpp"
#include "region/api/snapshots_of.hpp"

namespace vellum {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::year_month_day;

using Time = std::chrono::system_clock::time_point;

// Numbers that are equal for times in the same day, week, month or year, and only then.
std::int64_t daily(Time time) { return floor<days>(time).time_since_epoch().count(); }
std::int64_t weekly(Time time) {
  const std::int64_t since_monday = daily(time) + 3;  // 1970-01-01 was a Thursday
  return since_monday >= 0 ? since_monday / 7 : (since_monday - 6) / 7;
}
std::int64_t yearly(Time time) {
  return static_cast<int>(year_month_day(floor<days>(time)).year());
}
std::int64_t monthly(Time time) {
  return yearly(time) * 12 + static_cast<unsigned>(year_month_day(floor<days>(time)).month());
}

struct Rule {
  const char* name;
  std::uint32_t count;
  std::int64_t (*period)(Time time);  // null: each snapshot has its own
};

// The range is one branch's snapshots, newest first. After a clock was set back a day may occur
// twice: its newest snapshot counts.
void apply(const Rule& rule, std::vector<RetentionDecision>::iterator first,
           std::vector<RetentionDecision>::iterator last) {
  assert(first < last);
  std::uint32_t left = rule.count;
  std::set<std::int64_t> seen;
  for (auto at = first; at != last && left > 0; ++at) {
    if (rule.period != nullptr && !seen.insert(rule.period(at->version.created_at)).second)
      continue;
    at->kept_by.emplace_back(rule.name);
    --left;
  }
}

// A set stays as a whole if a rule keeps any of its members.
void keep_whole_sets(std::vector<RetentionDecision>& decisions) {
  std::map<std::string, std::vector<std::string>> rules;
  for (const RetentionDecision& d : decisions) {
    auto& of_set = rules[api::membership_of(d.version).id];
    if (of_set.empty()) of_set = d.kept_by;
  }
  for (RetentionDecision& d : decisions) {
    const std::string set = api::membership_of(d.version).id;
    if (!set.empty() && d.kept_by.empty()) d.kept_by = rules[set];
  }
}

}  // namespace

std::vector<RetentionDecision> decide_retention(const std::vector<VersionInfo>& versions,
                                                const RetentionPolicy& policy) {
  const Rule rules[] = {{"last", policy.keep_last, nullptr},
                        {"daily", policy.keep_daily, daily},
                        {"weekly", policy.keep_weekly, weekly},
                        {"monthly", policy.keep_monthly, monthly},
                        {"yearly", policy.keep_yearly, yearly}};
  if (std::all_of(std::begin(rules), std::end(rules), [](const Rule& r) { return r.count == 0; })) {
    fail(Errc::invalid_argument, "no rule is given for the snapshots to keep");
  }
  std::vector<RetentionDecision> out;
  for (const VersionInfo& v : versions) {
    if (!v.is_branch) out.push_back({v, {}});
  }
  std::sort(out.begin(), out.end(), [](const RetentionDecision& a, const RetentionDecision& b) {
    const VersionInfo &x = a.version, &y = b.version;
    return std::tie(x.branch, y.order, x.name) < std::tie(y.branch, x.order, y.name);
  });
  for (auto first = out.begin(); first != out.end();) {
    const auto last = std::find_if(first, out.end(), [&](const RetentionDecision& d) {
      return d.version.branch != first->version.branch;
    });
    for (const Rule& rule : rules) apply(rule, first, last);
    first = last;
  }
  keep_whole_sets(out);
  return out;
}

std::vector<RetentionDecision> forget(Store& store, const RetentionPolicy& policy,
                                      const ForgetOptions& options) {
  auto decisions =
      decide_retention(api::snapshots_of(store.versions(), options.branch, options.prefix), policy);
  for (const RetentionDecision& decision : decisions) {
    if (!decision.kept_by.empty() || options.dry_run) continue;
    try {
      store.remove_snapshot(decision.version.name);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
    }
  }
  return decisions;
}

}  // namespace vellum

namespace vellum::api {

std::vector<VersionInfo> snapshots_of(std::vector<VersionInfo> versions, const std::string& branch,
                                      const std::string& prefix) {
  const auto wanted = [&](const VersionInfo& v) {
    return (branch.empty() || v.branch == branch) && v.name.starts_with(prefix);
  };
  std::set<std::string> cut;  // sets with members that are not wanted
  for (const VersionInfo& v : versions) {
    if (!wanted(v)) cut.insert(membership_of(v).id);
  }
  cut.erase("");
  std::erase_if(versions, [&](const VersionInfo& v) {
    return v.is_branch || !wanted(v) || cut.contains(membership_of(v).id);
  });
  return versions;
}

namespace {

constexpr std::size_t kHashDigits = 8;

std::string hash_of(std::vector<std::string> branches) {
  std::sort(branches.begin(), branches.end());
  std::string text;
  for (const std::string& branch : branches) text += branch + '\n';
  const auto hash = base::checksum64(std::as_bytes(std::span(text)));
  return 'h' + fmt::format("{:016x}", hash).substr(0, kHashDigits);
}

// The letter tells a hash from a date.
bool is_hash(std::string_view text) {
  return text.size() == 1 + kHashDigits && text.starts_with('h') &&
         text.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

}  // namespace

std::string member_name(const std::string& set, const std::vector<std::string>& branches,
                        const std::string& branch) {
  return fmt::format("{}+{}.{}+{}", set, branches.size(), hash_of(branches), branch);
}

Membership membership_of(const VersionInfo& version) {
  const std::string end = "+" + version.branch;
  if (version.is_branch || !version.name.ends_with(end)) return {};
  const std::string id = version.name.substr(0, version.name.size() - end.size());
  const std::size_t plus = id.rfind('+');
  if (plus == std::string::npos || plus == 0) return {};
  const std::string_view shape = std::string_view(id).substr(plus + 1);
  const std::string_view number = shape.substr(0, shape.find('.'));
  const bool has_hash = number.size() != shape.size();
  if (has_hash && !is_hash(shape.substr(number.size() + 1))) return {};
  const auto members = base::parse_number<std::uint32_t>(number);
  if (!members.has_value() || number.starts_with('0')) return {};
  return {id.substr(0, plus), id, *members, has_hash};
}

}  // namespace vellum::api
