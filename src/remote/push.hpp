// remote/push.hpp: pushes versions of a store to a remote.
//
// Three rules make a push safe, at any interruption and against any other process:
//   - The objects of a version are durable at the remote before a head refers to them.
//   - The next head is created only if its number is free: of several pushers that have read the
//     same head, exactly one publishes, and the others begin again from its head.
//   - Each object of a new head is referred to by the head before it, or has that head's
//     generation: gc of the remote deletes neither.
// push.cpp lists the steps; docs/remote-format.md has the order of writes and the crash table.
#pragma once

#include <map>
#include <string>
#include <vellum/remote.hpp>

#include "remote/pieces/uploads.hpp"
#include "remote/session/session.hpp"
#include "store/branch/checkpointed_head.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

// By name of the branch.
using FollowedBranches = std::map<std::string, store::FollowedBranch>;

// The state and the rules of a process that pushes repeatedly.
struct PushRules {
  SeenObjects* seen_objects = nullptr;   // null: the push lists the remote's objects itself
  FollowedBranches* followed = nullptr;  // null: only what the store keeps of earlier processes
  bool own_branches_only = false;  // refuse a branch with another writer unless take_over is set
  bool embeds = false;             // a small push of one branch becomes a part of the head
  // What heads have of a version counts as existing. A repair pushes it again.
  bool uses_embedded = true;
};

// Pushes all of the versions with one head, or none. Reported versions are durable at the remote.
// Lost objects of the remote are uploaded again, and new lists never refer to lost objects.
// Errc::not_found: the store has no such version; busy: another store has pushed the branch, or is
// the only one that may push; already_exists: the remote has another snapshot of the name, or a
// branch for a snapshot; invalid_argument: the remote is of another store.
PushReport push(Session& session, const PushOptions& options, const ProgressFn& progress,
                const PushRules& rules = {});

}  // namespace vellum::remote
