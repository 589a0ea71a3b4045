// remote/session/session.hpp: a remote that a store knows by name, and one push or pull with it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "remote/session/known_remotes.hpp"
#include "remote/session/local_cache.hpp"
#include "remote/session/remote.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// The remote is at another URL now: its bucket was moved, or is reached otherwise. What the store
// knows of it stays. Errc::not_found: there is no such remote; invalid_argument: the URL is
// malformed, or another store's versions are there.
void set_remote_url(store::StoreDirectory& store, const std::string& name, const std::string& url);

// One at a time for each store, in all processes.
class Session {
 public:
  // Errc::busy: another push or pull is at work; not_found: there is no such remote. `objects`
  // stands in for what the remote's URL names, if it is not null.
  Session(store::StoreDirectory& store, const std::string& name,
          std::shared_ptr<ObjectStore> objects = nullptr);

  store::StoreDirectory& store() const noexcept { return store_; }
  const std::string& name() const noexcept { return name_; }
  const Remote& remote() const noexcept { return *remote_; }
  const RemoteFile& file() const noexcept { return file_; }
  // What this store has seen of a branch; null: nothing.
  const SeenBranch* find(const std::string& branch) const noexcept;
  // The newest head. Where the remote has lost what this store has published there, no snapshot
  // counts as replicated any more; durable on return.
  StoredHead newest_head();
  // Whether newest_head() has found that.
  bool has_lost() const noexcept { return has_lost_; }
  // This store has published the head: the next note has that, too.
  void published(const StoredHead& head) noexcept;
  // Notes what it has seen. Durable on return.
  void note(const std::vector<SeenBranch>& branches);
  // Notes the orders of snapshots that have been replicated. Durable on return.
  void note_replicated(const std::vector<std::uint64_t>& orders);

 private:
  store::StoreDirectory& store_;
  const std::string name_;
  std::unique_ptr<base::File> lock_;
  RemoteFile file_;
  std::shared_ptr<ObjectStore> objects_;
  std::unique_ptr<LocalCache> cache_;
  std::unique_ptr<Remote> remote_;
  bool has_lost_ = false;
};

}  // namespace vellum::remote
