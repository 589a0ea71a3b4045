// remote/pull.hpp: pulls versions of a remote into a store, and clones a remote.
#pragma once

#include <memory>
#include <string>
#include <vellum/remote.hpp>

#include "base/files/file.hpp"
#include "remote/session/remote_keys.hpp"
#include "remote/session/session.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

// Creates missing snapshots and branches. A branch that has not changed since the last push or pull
// gets the remote's head. Each name is durable before the next one begins; an interrupted pull
// resumes. A refused name does not stop the others. In a lazy clone the packs stay remote, unless
// `options.packs` is set. Errc::not_found: the remote has no such name; already_exists: the store
// has another snapshot of the name; busy: the branch has a writer, or a gc is active; io: branch
// and remote have both changed, or the branch would lose commits.
PullReport pull(Session& session, const PullOptions& options, const ProgressFn& progress);

// A remote that is cloned.
struct CloneSource {
  std::string url;
  std::shared_ptr<ObjectStore> objects;
  UnlockedRemote remote;
};
// `objects` replaces the engine of the URL unless it is null. Errors as of unlock_remote().
CloneSource open_clone_source(base::Fs& fs, const std::string& url,
                              std::shared_ptr<ObjectStore> objects = nullptr);

// Creates the store `directory` from the remote, its remote `origin`. Resumes an interrupted clone
// in `directory`.vellum-clone; it may have been lazy or not, the result is as this call requests.
// Errc::already_exists: the path exists.
PullReport clone(base::Fs& fs, const CloneSource& source, const std::string& directory,
                 const CloneOptions& options, const ProgressFn& progress);
// The same, of open_clone_source().
PullReport clone(base::Fs& fs, const std::string& url, const std::string& directory,
                 const CloneOptions& options, const ProgressFn& progress,
                 std::shared_ptr<ObjectStore> objects = nullptr);

// Fetches the remote packs of a lazy clone. Each pack is renamed into place when it is complete;
// existing packs stay as they are. Finally removes the list of missing pieces. Errc::corrupted: a
// piece is damaged or missing; the completed packs stay. REQUIRES: gc is locked out.
void materialize_packs(Session& session, PullReport& report, const ProgressFn& progress);

}  // namespace vellum::remote
