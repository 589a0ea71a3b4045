// cli/names/snapshot_set.hpp: sets: snapshots of several branches that were kept together and are
// restored together, such as those of the files of one run.
// Their names: region/api/snapshots_of.hpp.
#pragma once

#include <string>
#include <vector>

#include <vellum/store.hpp>

#include "region/api/snapshots_of.hpp"

namespace vellum::cli {

struct SnapshotSet {
  std::string name;
  std::vector<VersionInfo> members;  // by branch; at least one

  std::size_t whole() const;  // members that the set had when it was made
  bool complete() const { return members.size() == whole(); }
};

using api::member_name;
// The name of the set that the version is a member of; empty: of none.
std::string set_of(const VersionInfo& version);
// The id of that set; see api::Membership.
std::string set_id_of(const VersionInfo& version);
// "2 members", or "1 of 2 members".
std::string members_text(const SnapshotSet& set);
// Errc::not_found unless all members exist. The message names the branches that have none.
void require_complete(const Store& store, const SnapshotSet& set);
// By its name or its id. Empty members: there is no such set. Errc::invalid_argument: several sets
// have the name.
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
