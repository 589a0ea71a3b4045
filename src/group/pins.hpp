// group/pins.hpp: the snapshots that keep a global version in the stores of its partitions.
//
// A partition's part of a global version is a snapshot of its branch, named
// vellum-group-<half of the group's id>-<partition>-<epoch>-<attempt>. It is made before the
// version's record, and removed once a later record has taken its place, so the newest record always
// finds its snapshots, whatever crashes.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "format/group.hpp"
#include "format/version.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::group {

using format::GroupPin;

std::string pin_name(const format::Uuid& group_id, std::uint32_t partition, const GroupPin& pin);
// Nothing: it is not the name of a pin of this partition.
std::optional<GroupPin> parse_pin(const format::Uuid& group_id, std::uint32_t partition,
                                  const std::string& name);

// Throws Errc::already_exists when the branch has pins of another group.
void require_no_other_group(const store::StoreDirectory& store, const std::string& branch,
                            const format::Uuid& group_id);

// What a record says of a pin. Path, branch and host are the caller's. Errc::not_found, corrupted.
format::GroupPartition describe_pin(const store::StoreDirectory& store, const std::string& pin);

// The ref of a partition's pin, if it is what the record says. Errc::not_found: store and snapshot
// are there, but not this one; corrupted: it is another one. Each names store and snapshot.
format::SnapshotRef checked_pin(const store::StoreDirectory& store, const std::string& pin,
                                const format::GroupPartition& partition);

// As checked_pin(), of a pin that has been at a remote: there, and in each store, it has an order of
// its own.
format::SnapshotRef checked_copy(const store::StoreDirectory& store, const std::string& pin,
                                 const format::GroupPartition& partition);

// What a record says of a pin that came from a remote. Errors are those of checked_copy(). Path and
// host are the caller's.
format::GroupPartition describe_restored(const store::StoreDirectory& store, const std::string& pin,
                                         const format::GroupPartition& partition);

// Makes the branch stand on the pin: nothing is done where it does, otherwise the branch is made
// anew, and its later commits are gone. It may be cut off anywhere, and done again. Errc::busy: the
// branch has a writer.
void settle_branch(store::StoreDirectory& store, const std::string& branch,
                   const format::SnapshotRef& pin, const std::optional<format::Encoding>& encoding);

// The pins of a partition that are in the store.
std::vector<GroupPin> pins_in(const store::StoreDirectory& store, const format::Uuid& group_id,
                              std::uint32_t partition);
// Removes a pin. Names that are removed make gc look at all of a store anew (remove_space_note()). A
// pin lives for one version only, and what it kept is as little as that version changed: so the next
// gc comes when packs have grown, as if nothing had been removed.
void remove_pin(store::StoreDirectory& store, const std::string& pin);
// Removes the partition's pins except `keep`. Returns their number.
std::size_t remove_pins_except(store::StoreDirectory& store, const format::Uuid& group_id,
                               std::uint32_t partition, const std::set<GroupPin>& keep);

}  // namespace vellum::group
