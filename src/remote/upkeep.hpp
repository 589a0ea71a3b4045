// remote/upkeep.hpp: verify, statistics, forget and gc of a remote, without a store.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "remote/objects/hold.hpp"
#include "remote/session/remote.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

struct RemoteDamage {
  std::string object, reason;
  std::vector<std::string> versions;  // that need it; sorted. None: it is no content, e.g. a hold
};

struct RemoteVerifyReport {
  std::uint64_t versions = 0, lists = 0, pieces = 0, records = 0, bytes_read = 0;
  std::vector<RemoteDamage> damages;
};

// Reads the holds, the newest head and, of its versions, every list, the index of every piece and the
// page map: each page of a version must be in the pieces of its own list. With `read_data`, reads whole
// pieces and checks each record. Throws errors that are not damage of an object.
RemoteVerifyReport verify_remote(const Remote& remote, bool read_data, const ProgressFn& progress);

// Whether the place keeps older versions of objects of the remote, so that its state at an earlier
// time can be read. Not an error: it does not answer.
bool keeps_older_states(ObjectStore& objects);

struct RemoteSpace {
  std::uint64_t heads = 0, objects = 0;  // objects: lists, pieces and tables of names
  std::uint64_t object_bytes = 0;        // of these and of the heads
  std::uint64_t needed_objects = 0;      // those that a version or a lazy clone needs
  // The same, with the newest head and those parts of other heads that a version needs.
  std::uint64_t needed_bytes = 0;
  std::uint32_t generation = 0;
  std::vector<Hold> holds;  // of lazy clones
};
RemoteSpace space_of_remote(const Remote& remote);

// Removes the names with a new head. Objects that only they needed stay until the next gc.
// Errc::not_found: no such name; then none is removed.
void forget_names(const Remote& remote, const std::vector<std::string>& names);

struct RemoteFreeable {
  std::uint64_t objects = 0, bytes = 0;
};
// What a gc would delete after forget_names(): objects that no other version and no hold needs.
// Errc::not_found: no such name.
RemoteFreeable freeable_without(const Remote& remote, const std::vector<std::string>& names);

struct RemoteGcReport {
  std::uint64_t objects_removed = 0, bytes_removed = 0, heads_removed = 0;
  std::uint64_t objects_left = 0, bytes_left = 0;
  // Of a remote whose objects are locked; otherwise 0.
  std::chrono::seconds lock{0};
  std::uint64_t locks_extended = 0;
  std::uint64_t old_versions_removed = 0, old_bytes_removed = 0;  // whose locks are over
  std::vector<std::string> warnings;  // about the locks, a sentence each
  std::vector<std::string> damaged;   // branches with lost or damaged pieces, which a repair mends
};
// Deletes objects that no version and no hold needs. A dry run only reports them: it deletes
// nothing and publishes no boundary. Where objects are locked (remote/locks.hpp), a deleted one is
// kept as an older version until its lock is over; then a later gc frees it.
RemoteGcReport collect_remote(const Remote& remote, bool dry_run, const ProgressFn& progress);

}  // namespace vellum::remote
