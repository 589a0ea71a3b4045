// Retention by age (vellum/retention.hpp).
#include <algorithm>
#include <chrono>
#include <set>
#include <tuple>
#include <vellum/retention.hpp>

namespace vellum {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::sys_days;
using std::chrono::year_month_day;

sys_days day_of(std::int64_t time_ns) {
  return floor<days>(
      std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(time_ns)));
}

// Numbers that are equal for times in the same day, week, month or year, and only then.
std::int64_t daily(std::int64_t time_ns) { return day_of(time_ns).time_since_epoch().count(); }
std::int64_t weekly(std::int64_t time_ns) {
  const std::int64_t since_monday = daily(time_ns) + 3;  // 1970-01-01 was a Thursday
  return since_monday >= 0 ? since_monday / 7 : (since_monday - 6) / 7;
}
std::int64_t yearly(std::int64_t time_ns) {
  return static_cast<int>(year_month_day(day_of(time_ns)).year());
}
std::int64_t monthly(std::int64_t time_ns) {
  return yearly(time_ns) * 12 + static_cast<unsigned>(year_month_day(day_of(time_ns)).month());
}

struct Rule {
  const char* name;
  std::uint32_t count;
  std::int64_t (*period)(std::int64_t time_ns);  // null: each snapshot is its own
};

// The range is one branch's snapshots, newest first. A clock that was set back makes days come
// again: the newest snapshot of such a day counts.
void apply(const Rule& rule, std::vector<RetentionDecision>::iterator first,
           std::vector<RetentionDecision>::iterator last) {
  std::uint32_t left = rule.count;
  std::set<std::int64_t> seen;
  for (auto at = first; at != last && left > 0; ++at) {
    if (rule.period != nullptr && !seen.insert(rule.period(at->version.created_ns)).second)
      continue;
    at->kept_by.emplace_back(rule.name);
    --left;
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
    throw Error(Errc::invalid_argument, "no rule says which snapshots to keep");
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
  return out;
}

}  // namespace vellum
