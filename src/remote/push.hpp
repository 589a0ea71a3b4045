// remote/push.hpp: versions of a store go to a remote.
#pragma once

#include <vellum/remote.hpp>

#include "remote/session/session.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

// Pushes all of the names by one head, or none. What it reports as pushed is durable at the remote.
// Errc::not_found: the store has no such version; busy: another store has pushed the branch, or is
// the only one that may push; already_exists: the remote has another snapshot of the name, or a
// branch for a snapshot; invalid_argument: the remote is of another store.
PushReport push(Session& session, const PushOptions& options, const ProgressFn& progress);

}  // namespace vellum::remote
