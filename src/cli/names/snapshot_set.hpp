// cli/names/snapshot_set.hpp: sets: snapshots of several branches that were kept together and are
// restored together, such as those of the files of one run.
//
// A set is a convention of names: the member of branch B in set S is the snapshot S+B of B.
#pragma once

#include <string>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::cli {

struct SnapshotSet {
  std::string name;
  std::vector<VersionInfo> members;  // by branch; at least one
};

std::string member_name(const std::string& set, const std::string& branch);
// The name of the set that the version is a member of; empty: of none.
std::string set_of(const VersionInfo& version);
// Empty members: there is no such set.
SnapshotSet find_set(const Store& store, const std::string& name);
// Takes the members of all sets out of `versions`; in the order of their first members there.
std::vector<SnapshotSet> take_sets(std::vector<VersionInfo>& versions);

// Throws unless a set of these branches can get the name: Errc::invalid_argument, already_exists.
void require_free_set(const Store& store, const std::string& name,
                      const std::vector<std::string>& branches);
// Keeps the head of each branch. After an error none is kept.
void create_set(Store& store, const std::string& name, const std::vector<std::string>& branches,
                const std::string& message);

}  // namespace vellum::cli
