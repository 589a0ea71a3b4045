// store/catalog/snapshots/newest_snapshots.hpp: the newest snapshots, without reading the refs of all others.
//
// The file snapshots.newest (format/newest_snapshots.hpp) has the first names of the list of all
// snapshots, newest first. It is a hint: the refs are what counts. It is used only while it states
// the last assigned order and the time of the directory `snapshots`, which every program changes
// that adds or removes a ref, also one that does not know this file. The time would be exact to a
// few milliseconds only, so each writer of the file sets it to the time of the clock, which no
// later change gets. A file system that does not keep that time has no such file. A copy may have
// the time of its original, so the file also states the inode and the st_ctime, which no copy has.
//
// The file is written under the lock of orders. A write that fails leaves a file that is behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/version.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// The newest snapshots, at most `most`: the larger order first, and of the same order by name. Fast
// up to this number; the list of more, and of a store whose file is missing or behind, reads all
// refs, and writes the file if that is possible. Errc::corrupted names a ref.
inline constexpr std::size_t kNewestFast = 64;
std::vector<format::SnapshotRef> newest_snapshots(const PackStore& store, std::size_t most);

// Whether a snapshot's name may begin with "latest+", as those of the members of a set `latest` do.
bool may_have_latest_members(const PackStore& store);

// The file follows an assignment of orders. REQUIRES: the caller holds the lock of orders; before
// this change the last order was `before`.
void note_assigned_order(const PackStore& store, std::uint64_t before, std::uint64_t now);

// Runs `change`, which creates the ref of a snapshot; the file follows. Throws only what `change`
// throws, or that the lock of orders is held for too long.
void change_refs_by_adding(const PackStore& store, const format::SnapshotRef& ref,
                           const std::function<void()>& change);
// Runs `change`, which removes the ref, and then `flush`, which makes that durable; the file follows:
// a snapshot that a power cut restores must not be missing in a list. Throws only what these two
// throw. It does not wait for a lock that another process keeps.
void change_refs_by_removing(const PackStore& store, const std::string& name,
                             const std::function<void()>& change,
                             const std::function<void()>& flush);

}  // namespace vellum::store
