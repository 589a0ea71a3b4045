// vellum/retention.hpp: which snapshots to keep, by their age.
//
// A plain function over a list of versions: it looks at no store and removes nothing. `vellum
// forget` removes what it does not keep.
#ifndef VELLUM_RETENTION_HPP
#define VELLUM_RETENTION_HPP

#include <cstdint>
#include <string>
#include <vector>

#include <vellum/store.hpp>

namespace vellum {

// How many snapshots each rule keeps: the newest ones, and of each of the newest days, weeks (from
// Monday, as in ISO 8601), months and years that have any the newest. A snapshot that one rule
// keeps stays. 0: the rule keeps none. Which of two is newer, VersionInfo::order says, and never
// the clock; the day of a snapshot is that of VersionInfo::created_ns, in UTC.
struct RetentionPolicy {
  std::uint32_t keep_last = 0;
  std::uint32_t keep_daily = 0, keep_weekly = 0, keep_monthly = 0, keep_yearly = 0;
};

struct RetentionDecision {
  VersionInfo version;
  std::vector<std::string> kept_by;  // "last", "daily", ...; empty: nothing keeps it
};

// Branches in the list are left out. Each branch that snapshots were made on counts for itself. The
// result is sorted by branch, then newest first. A policy without any rule throws
// Errc::invalid_argument: it would keep nothing.
std::vector<RetentionDecision> decide_retention(const std::vector<VersionInfo>& versions,
                                                const RetentionPolicy& policy);

}  // namespace vellum

#endif  // VELLUM_RETENTION_HPP
