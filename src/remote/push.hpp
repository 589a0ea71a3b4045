// remote/push.hpp: versions of a store go to a remote.
#pragma once

#include <string>
#include <vector>

#include "remote/session.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

struct PushOptions {
  std::vector<std::string> names;  // of branches and snapshots
  // Pushes branches that another store has pushed meanwhile, too; their last push is lost.
  bool take_over = false;
};

struct PushedName {
  std::string name;
  bool is_branch = false;
  bool was_there = false;  // the remote has this version already
  std::uint64_t epoch = 0;
};

struct PushReport {
  std::vector<PushedName> names;
  std::uint64_t objects_uploaded = 0, bytes_uploaded = 0;  // of pieces and lists
  std::uint64_t pieces_used_again = 0;
};

// Pushes all of the names by one head, or none. What it reports as pushed is durable at the remote.
// Errc::not_found: the store has no such version; busy: another store has pushed the branch, or is
// the only one that may push; already_exists: the remote has another snapshot of the name, or a
// branch for a snapshot; invalid_argument: the remote is of another store.
PushReport push(Session& session, const PushOptions& options, const ProgressFn& progress);

}  // namespace vellum::remote
