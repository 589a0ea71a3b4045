// group/pins.hpp: the snapshots that keep a global version in the stores of its partitions.
//
// A partition's part of a global version is a snapshot of its branch, named vellum-group-<half of
// the group's id>-<partition>-<epoch>-<attempt>. It is created before the version's record, and
// removed after a later record has superseded it. Thus the newest record always has its snapshots,
// after any crash.
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
// Nullopt: not the name of a pin of this partition.
std::optional<GroupPin> parse_pin(const format::Uuid& group_id, std::uint32_t partition,
                                  const std::string& name);

// Errc::already_exists: the branch has pins of another group.
void require_no_other_group(const store::StoreDirectory& store, const std::string& branch,
                            const format::Uuid& group_id);

// A record's entry for a pin, without path, branch and host. Errc::not_found, corrupted.
format::GroupPartition describe_pin(const store::StoreDirectory& store, const std::string& pin);

// The ref of a partition's pin, checked against the record. Errc::not_found: no such pin in the
// store; corrupted: it is another version. Each names store and snapshot.
format::SnapshotRef checked_pin(const store::StoreDirectory& store, const std::string& pin,
                                const format::GroupPartition& partition);

// Like checked_pin(), for a pin that was pushed or pulled: its order differs in each store and at
// the remote, and is not compared.
format::SnapshotRef checked_copy(const store::StoreDirectory& store, const std::string& pin,
                                 const format::GroupPartition& partition);

// A record's entry for a pin that was pulled, without path and host. Errors are those of
// checked_copy().
format::GroupPartition describe_restored(const store::StoreDirectory& store, const std::string& pin,
                                         const format::GroupPartition& partition);

// Resets the branch to the pin. If its head is another version, the branch is recreated and loses
// its later commits. May be interrupted anywhere and repeated. Errc::busy: the branch has a writer.
void settle_branch(store::StoreDirectory& store, const std::string& branch,
                   const format::SnapshotRef& pin, const std::optional<format::Encoding>& encoding);

// The pins of a partition in the store.
std::vector<GroupPin> pins_in(const store::StoreDirectory& store, const format::Uuid& group_id,
                              std::uint32_t partition);
// Removes a pin without remove_space_note(), after which gc would scan the whole store. A pin
// exists for one version only and keeps little space, so gc may wait until packs have grown.
void remove_pin(store::StoreDirectory& store, const std::string& pin);
// Removes the partition's pins except `keep`. Returns their number.
std::size_t remove_pins_except(store::StoreDirectory& store, const format::Uuid& group_id,
                               std::uint32_t partition, const std::set<GroupPin>& keep);

}  // namespace vellum::group
