// vellum/retention.hpp: which snapshots to keep, by their age.
//
// decide_retention() is a plain function over a list of versions: it reads no store and removes
// nothing. forget() removes the snapshots that it does not keep, as `vellum forget` does.
#ifndef VELLUM_RETENTION_HPP
#define VELLUM_RETENTION_HPP

#include <cstdint>
#include <string>
#include <vector>

#include <vellum/store.hpp>

namespace vellum {

// The number of snapshots that each rule keeps; 0: none. keep_last keeps the newest ones. The other
// rules keep the newest snapshot of each of the newest days, weeks (from Monday, as in ISO 8601),
// months or years that have any. A snapshot stays if any rule keeps it. VersionInfo::order decides
// which of two is newer, never the clock; a snapshot's day is that of VersionInfo::created_at, UTC.
struct RetentionPolicy {
  std::uint32_t keep_last = 0;
  std::uint32_t keep_daily = 0, keep_weekly = 0, keep_monthly = 0, keep_yearly = 0;
};

struct RetentionDecision {
  VersionInfo version;
  std::vector<std::string> kept_by;  // "last", "daily", ...; empty: no rule keeps it
};

// Branches in the list are ignored. The rules apply to the snapshots of each branch separately. A
// set (vellum-log(1)) stays as a whole if a rule keeps any of its members. The result is sorted by
// branch, then newest first. A policy without any rule throws Errc::invalid_argument: it would keep
// nothing.
std::vector<RetentionDecision> decide_retention(const std::vector<VersionInfo>& versions,
                                                const RetentionPolicy& policy);

// The snapshots that forget() considers.
struct ForgetOptions {
  std::string branch;    // created on it; "": on any
  std::string prefix;    // names that begin with it
  bool dry_run = false;  // remove nothing
};

// Removes the snapshots that no rule keeps, and returns all decisions, as above. The next garbage
// collection frees their space. A snapshot that another process has removed meanwhile is no error.
std::vector<RetentionDecision> forget(Store& store, const RetentionPolicy& policy,
                                      const ForgetOptions& options = ForgetOptions());

}  // namespace vellum

#endif  // VELLUM_RETENTION_HPP
