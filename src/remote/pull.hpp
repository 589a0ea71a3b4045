// remote/pull.hpp: versions of a remote come to a store, and a whole store comes from a remote.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "remote/session.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

struct PullOptions {
  std::vector<std::string> names;  // empty: all of the remote's
};

struct PulledName {
  std::string name;
  bool is_branch = false;
  bool was_there = false;  // nothing was to be done
  bool is_ahead = false;   // a branch with commits of this store's own, which stays as it is
};

struct PullReport {
  std::vector<PulledName> names;
  std::uint64_t pieces_read = 0, bytes_read = 0;
};

// Snapshots and branches that the store lacks are made. A branch that it has and has not changed
// since it was last pushed or pulled gets the remote's head. Each name is durable when the next one
// begins; a pull that was cut off goes on where it was. Errc::not_found: the remote has no such
// name; already_exists: the store has another snapshot of the name; busy: the branch has a writer,
// or a gc is at work; io: branch and remote have both changed.
PullReport pull(Session& session, const PullOptions& options, const ProgressFn& progress);

struct CloneOptions {
  std::vector<std::string> names;        // empty: all
  std::unique_ptr<ObjectStore> objects;  // in place of what the URL names, if it is not null
};

// Makes the store `directory` from the remote at `url`, which it knows as `origin`. What a clone
// that was cut off has left in `directory`.vellum-clone is used. Errc::already_exists: there is
// something of that name.
PullReport clone(base::Fs& fs, const std::string& url, const std::string& directory,
                 CloneOptions options, const ProgressFn& progress);

}  // namespace vellum::remote
