// remote/replicator.hpp: replicates the commits of a store to a remote continuously.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vellum/remote.hpp>

#include "remote/locks.hpp"
#include "remote/pieces/uploads.hpp"
#include "remote/push.hpp"
#include "remote/session/session.hpp"

namespace vellum::remote {

// The snapshots of a remote, for a store that replicates to it.
struct SnapshotsThere {
  Head own;       // that the store has replicated, of branches that it writes
  Head orphaned;  // that it has replicated, of branches that are gone here or there
  Head others;
};
// The names to forget among `own` and `orphaned`.
using RetentionFn = std::function<std::vector<std::string>(const SnapshotsThere& snapshots)>;

// Pushes new versions twice in each interval. Thus a commit waits for at most half an interval, and
// its push has the other half.
class Replicator {
 public:
  // Adds the remote if it is new. `objects` replaces the engine of the URL unless it is null.
  // `forgets`, unless it is null, selects snapshots that are forgotten there. REQUIRES: `store`
  // outlives it.
  Replicator(store::StoreDirectory& store, const std::string& url, const ReplicateOptions& options,
             std::shared_ptr<ObjectStore> objects = nullptr, RetentionFn forgets = nullptr);

  // Runs until `on_state` returns false; see Store::replicate(). Checks the remote periodically
  // even without new versions, and uploads lost objects again.
  ReplicateState run(const ReplicateFn& on_state);
  // Pushes new versions once. False: a transient failure (state().failure).
  bool push_new();
  ReplicateState state() const;
  // What a person should know, a sentence each, since the last call.
  std::vector<std::string> take_warnings();

 private:
  struct NewVersions {
    std::vector<std::string> names;
    std::vector<std::uint64_t> orders;  // of the snapshots among them
  };
  bool is_pushed_branch(const RemoteFile& file, const std::string& branch) const;
  NewVersions find_new() const;
  std::unique_ptr<Session> open_session(std::string& busy);
  std::string push_once();
  void push_in(Session& session);
  void keep_warnings(const Session& session);
  bool push_in_background(const ReplicateFn& on_state);
  void note_behind();
  std::chrono::steady_clock::time_point next_check(std::chrono::steady_clock::time_point start);
  bool is_check_due() const;
  bool is_unchanged(const Remote& remote) const;
  bool check_remote(Session& session);
  bool push_fresh(Session& session);
  void forget_old(Session& session);
  SnapshotsThere snapshots_there(const Session& session, const Head& head) const;
  void push_names(Session& session, const std::vector<std::string>& names);
  void push_each(Session& session, const std::vector<std::string>& names);
  bool wait(const ReplicateFn& on_state, std::chrono::steady_clock::time_point until);
  void update_behind();

  store::StoreDirectory& store_;
  const ReplicateOptions options_;
  std::string remote_;
  std::shared_ptr<ObjectStore> objects_;
  const RetentionFn forgets_;
  std::map<std::string, std::string>
      refused_;  // names of other versions at the remote, with the error
  std::optional<std::chrono::steady_clock::time_point>
      checked_;  // when the remote was checked; nullopt: check it now
  std::chrono::steady_clock::time_point listed_{};  // when all of it was
  SeenObjects seen_objects_;
  FollowedBranches followed_;
  std::set<std::string> lost_;             // names whose objects the remote may have lost
  std::vector<std::byte> unopened_slots_;  // of Session::follow_slots_there()
  LockPasses lock_passes_;                 // uses `objects_`
  bool ends_ = false;                      // only what is new is sent
  int failures_ = 0;                       // in a row
  std::mt19937_64 random_{std::random_device{}()};
  mutable std::mutex mutex_;  // guards the members below
  std::optional<std::chrono::steady_clock::time_point> behind_since_;
  ReplicateState state_;
  std::vector<std::string> warnings_;
};

}  // namespace vellum::remote
