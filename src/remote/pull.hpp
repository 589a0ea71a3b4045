// remote/pull.hpp: versions of a remote come to a store, and a whole store comes from a remote.
#pragma once

#include <memory>
#include <string>
#include <vellum/remote.hpp>

#include "base/files/file.hpp"
#include "remote/session/session.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

// Snapshots and branches that the store lacks are made. A branch that it has and has not changed
// since it was last pushed or pulled gets the remote's head. Each name is durable when the next one
// begins; a pull that was cut off goes on where it was. Errc::not_found: the remote has no such
// name; already_exists: the store has another snapshot of the name; busy: the branch has a writer,
// or a gc is at work; io: branch and remote have both changed, or the branch would lose commits. A
// name that is refused so does not keep the others from coming. In a lazy clone the packs stay at
// the remote, unless `options` asks for them.
PullReport pull(Session& session, const PullOptions& options, const ProgressFn& progress);

// Makes the store `directory` from the remote at `url`, which it knows as `origin`. What a clone
// that was cut off has left in `directory`.vellum-clone is used; lazy or not, it is what this call
// asks for in the end. Errc::already_exists: there is something of that name. `objects` stands in
// for what the URL names, if it is not null.
PullReport clone(base::Fs& fs, const std::string& url, const std::string& directory,
                 const CloneOptions& options, const ProgressFn& progress,
                 std::shared_ptr<ObjectStore> objects = nullptr);

// Each pack gets its name when it is whole; one that has a name stays as it is. Then the list of what
// is away goes. Errc::corrupted: a piece is damaged or missing;
// the packs that have come stay. REQUIRES: gc is kept out.
void materialize_packs(Session& session, PullReport& report, const ProgressFn& progress);

}  // namespace vellum::remote
