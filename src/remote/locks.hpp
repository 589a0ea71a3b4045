// remote/locks.hpp: the locks of a remote's objects, and the older versions that they leave.
//
// Each object is locked for the remote's duration when it is put. Objects that a version needs are
// locked again before less than half of the duration is left. So, at any time and with any
// credentials, nobody can remove for at least that long what the remote has.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

#include "remote/session/session.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

struct LockRenewal {
  std::uint64_t locked = 0;    // versions of objects that are needed
  std::uint64_t extended = 0;  // of these
  std::uint64_t deleted = 0;   // needed objects of which only older versions are left
};

// Looks at the lock of each object that the versions of the newest head need, and extends those
// with less than five eighths of the duration left. REQUIRES: the objects have versions.
LockRenewal renew_locks(const Remote& remote, std::chrono::seconds duration,
                        const ProgressFn& progress);

// The same, of a store's remote, if it is locked and was not looked at for a sixteenth of the
// duration. Also puts the note of the duration, if it is lost or shorter. What a person should know
// becomes a warning of the session.
void renew_locks_if_due(Session& session);

struct FreedVersions {
  std::uint64_t versions = 0, bytes = 0;
};
// Removes older versions of objects whose locks are over, and deletions without such versions, but
// nothing of the `needed` keys. A dry run only counts those that may go.
FreedVersions free_old_versions(const Remote& remote, std::chrono::seconds duration,
                                const std::set<std::string>& needed, bool dry_run);

}  // namespace vellum::remote
