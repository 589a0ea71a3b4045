// remote/locks.hpp: the locks of a remote's objects, and the older versions that they leave.
//
// Each object is locked for the remote's duration when it is put. Objects that a version needs are
// locked again before less than half of the duration is left. So, at any time and with any
// credentials, nobody can remove for at least that long what the remote has.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "remote/lock_pass.hpp"
#include "remote/session/session.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

// A whole pass at once (remote/lock_pass.hpp). REQUIRES: the objects have versions.
LockRenewal renew_locks(const Remote& remote, std::chrono::seconds duration,
                        const ProgressFn& progress);

// The passes of a process that pushes to a store's remote again and again.
class LockPasses {
 public:
  // Of a locked remote: goes on with a pass until this time, and somewhat longer, if one has begun
  // or is due: a sixteenth of the duration after the last one has begun. Before a pass, puts the
  // note of the duration, if it is lost or shorter. What a person should know becomes a warning of
  // the session; also an error, after which a pass begins again some minutes later.
  void go_on(Session& session, LockPass::Clock::time_point until);
  bool has_begun() const noexcept { return pass_ != nullptr; }

 private:
  bool is_due(const Session& session) const;
  std::unique_ptr<LockPass> pass_;
  LockPass::Clock::time_point retry_at_{};
};

// The same, of a process that pushes once: the whole pass, if one is due.
void renew_locks_if_due(Session& session);

struct FreedVersions {
  std::uint64_t versions = 0, bytes = 0;
};
// Removes older versions of objects whose locks are over, and deletions without such versions, but
// nothing of the `needed` keys that may be the right object: of the size that is needed. A dry run
// only counts those that may go; of these, some may be locked.
FreedVersions free_old_versions(const Remote& remote, std::chrono::seconds duration,
                                const NeededKeys& needed, bool dry_run);

}  // namespace vellum::remote
