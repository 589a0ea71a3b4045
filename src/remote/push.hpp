// remote/push.hpp: versions of a store go to a remote.
#pragma once

#include <vellum/remote.hpp>

#include "remote/pieces/uploads.hpp"
#include "remote/session/session.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

// What a long process keeps over several pushes, and asks of each.
struct PushRules {
  SeenObjects* seen_objects = nullptr;  // null: the push lists what is there itself
  bool own_branches_only =
      false;  // a branch that another store writes is refused without take_over
};

// Pushes all of the names by one head, or none. What it reports as pushed is durable at the remote.
// Errc::not_found: the store has no such version; busy: another store has pushed the branch, or is
// the only one that may push; already_exists: the remote has another snapshot of the name, or a
// branch for a snapshot; invalid_argument: the remote is of another store.
// What the remote has lost of them is sent again, and nothing is built on what is lost.
PushReport push(Session& session, const PushOptions& options, const ProgressFn& progress,
                const PushRules& rules = {});

}  // namespace vellum::remote
