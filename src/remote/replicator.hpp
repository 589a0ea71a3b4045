// remote/replicator.hpp: the commits of a store go to a remote as they are made.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vellum/remote.hpp>

#include "remote/pieces/uploads.hpp"
#include "remote/session/session.hpp"

namespace vellum::remote {

// Looks twice in each interval what the store has that the remote has not seen, and pushes it. So a
// commit waits for half an interval at most, and the push has the other half.
class Replicator {
 public:
  // Makes the remote known if it is not. `objects` stands in for what the URL names, if not null.
  Replicator(store::StoreDirectory& store, const std::string& url, const ReplicateOptions& options,
             std::shared_ptr<ObjectStore> objects = nullptr);

  // Until `told` returns false; see Store::replicate(). An idle one looks at the remote now and
  // then, and sends what is lost there.
  ReplicateState run(const ReplicateFn& on_state);
  // Pushes what is new, once. False: it failed in a way that may pass (state().failure).
  bool push_new();
  ReplicateState state() const;

 private:
  struct NewVersions {
    std::vector<std::string> names;
    std::vector<std::uint64_t> orders;  // of the snapshots among them
  };
  bool is_pushed_branch(const RemoteFile& file, const std::string& branch) const;
  NewVersions find_new() const;
  std::unique_ptr<Session> open_session(std::string& busy);
  std::string push_once();
  bool push_in_background(const ReplicateFn& on_state);
  void note_behind();
  std::chrono::steady_clock::time_point next_check(std::chrono::steady_clock::time_point start);
  bool is_check_due() const;
  void check_remote(Session& session);
  void push_fresh(Session& session);
  void push_names(Session& session, const std::vector<std::string>& names);
  void push_each(Session& session, const std::vector<std::string>& names);
  bool wait(const ReplicateFn& on_state, std::chrono::steady_clock::time_point until);
  void update_behind();

  store::StoreDirectory& store_;
  const ReplicateOptions options_;
  std::string remote_;
  std::shared_ptr<ObjectStore> objects_;
  std::map<std::string, std::string> refused_;  // names that mean something else at the remote
  std::optional<std::chrono::steady_clock::time_point>
      checked_;  // when the remote was looked at; unset: look
  SeenObjects seen_objects_;
  std::set<std::string> lost_;  // names that the remote may not have as it should
  int failures_ = 0;            // in a row
  std::mt19937_64 random_{std::random_device{}()};
  mutable std::mutex mutex_;  // guards what follows
  std::optional<std::chrono::steady_clock::time_point> behind_since_;
  ReplicateState state_;
};

}  // namespace vellum::remote
