// region/api/snapshots_of.hpp: the snapshots that retention considers, for `vellum forget` and the
// C interface; and the sets that stay or go as one.
//
// A set is a convention of names: the member of branch B in set S of N members is the snapshot
// S+N.H+B of B, where H tells sets of one name and size apart, as two stores that share a remote may
// make them: the letter h and 8 digits of a hash of their branches. Builds before this one wrote S+N+B. A set with
// fewer members than N has lost some, or was never finished.
#pragma once

#include <cstddef>
#include <string>
#include <vector>
#include <vellum/store.hpp>

namespace vellum::api {

// The snapshots among `versions` that were created on `branch` (empty: on any) and whose names
// begin with `prefix`; of a set either all members or none.
std::vector<VersionInfo> snapshots_of(std::vector<VersionInfo> versions, const std::string& branch,
                                      const std::string& prefix);

struct Membership {
  std::string set;          // its name; empty: the version is a member of none
  std::string id;           // S+N.H or S+N: the same for all members of the set, and for no others
  std::size_t members = 0;  // of the whole set
  bool has_hash = false;    // without one, two stores may have different sets of this id
};
// `branches`: of all members.
std::string member_name(const std::string& set, const std::vector<std::string>& branches,
                        const std::string& branch);
Membership membership_of(const VersionInfo& version);

}  // namespace vellum::api
