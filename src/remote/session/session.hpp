// remote/session/session.hpp: one push or pull between a store and one of its remotes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "remote/session/known_remotes.hpp"
#include "remote/session/local_cache.hpp"
#include "remote/session/remote.hpp"
#include "remote/session/remote_keys.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// Changes the URL of a remote that was moved. The rest of the remote's file stays. Errc::not_found:
// no such remote; invalid_argument: the URL is malformed, or the remote has another store's
// versions.
void set_remote_url(store::StoreDirectory& store, const std::string& name, const std::string& url);

// At most one per store, in all processes.
class Session {
 public:
  // `objects` replaces the engine of the remote's URL unless it is null; they may be opened
  // (opened_objects()), or are opened here, by the slots `from`. Errc::busy: another push or pull is
  // active; not_found: no such remote; wrong_key: as of opened_objects().
  Session(store::StoreDirectory& store, const std::string& name,
          std::shared_ptr<ObjectStore> objects = nullptr, SlotsFrom from = SlotsFrom::remote);

  store::StoreDirectory& store() const noexcept { return store_; }
  const std::string& name() const noexcept { return name_; }
  const Remote& remote() const noexcept { return *remote_; }
  // Its objects, for other sessions of this process.
  const std::shared_ptr<ObjectStore>& opened() const noexcept { return objects_; }
  const RemoteFile& file() const noexcept { return file_; }
  // The state of the remote's branch at the last push or pull; null: none.
  const SeenBranch* find(const std::string& branch) const noexcept;
  // The newest head. If the remote has lost a head of this store, all snapshots count as not yet
  // replicated; that is durable on return. `only_newer`: that, and going_back(), are Errc::untrusted,
  // and nothing is noted.
  StoredHead newest_head(bool only_newer = false);
  // The same. A damaged one is put again (Remote::restore_newest_head()), with a warning.
  StoredHead mended_newest_head();
  // The same, without looking at a head that can be read.
  StoredHead readable_newest_head();
  // Such a loss was found otherwise. Durable on return.
  void note_lost(const Head& newest);
  // The least number of heads that follow such a loss, until one is published; 0: any.
  std::uint64_t number_after_loss() const noexcept;
  // Whether such a loss was found.
  bool has_lost() const noexcept { return has_lost_; }
  // A sentence: this store has seen a newer head, or one that this one does not descend from. Empty: it
  // has not.
  std::string going_back(const StoredHead& newest) const;
  // A pull has seen it. It replaces a head with a greater number only if `accepts_older`. Durable on
  // return.
  void note_seen(const StoredHead& newest, bool accepts_older);
  // Whether this store remembers such a head: it does if a version there is signed, or if it already
  // remembers one. An older Vellum does not read the remote's file then.
  bool remembers(const StoredHead& newest) const;
  // Records that this store has published the head; the next note() makes that durable.
  void published(const StoredHead& head) noexcept;
  // Updates these branches in the remote's file. Durable on return.
  void note(const std::vector<SeenBranch>& branches);
  // Writes the superblock if it is missing or damaged there (remote::restore_superblock()). True: it
  // was damaged, which is a warning.
  bool restore_superblock();
  // Puts the key slots of an encrypted store there, unless they are those that this store last put
  // there, or was cloned with. `looks`: also if the remote has lost them, or they are damaged; that
  // is one request. Of a remote that is encrypted by objects, puts its slots there again if `looks`,
  // and they are lost or damaged, or do not open and SlotsFrom::remote_or_store was given. True: they
  // were. Durable on return. REQUIRES: restore_superblock() has returned.
  bool follow_key_slots(bool looks);
  // For a process whose objects were opened some time ago: looks, by one request if `looks`, whether
  // the key slots of a remote that is encrypted by objects were changed there. If they open without
  // asking a person, the store keeps a copy of them. Otherwise they become `unopened`; the store
  // keeps its own copy, since they may be a forger's, but this session puts them there again where
  // they are lost, since a secret that was removed opens the copy.
  void follow_slots_there(std::vector<std::byte>& unopened, bool looks);
  // Errc::unsupported: the objects of the remote are to be locked, and cannot be. Call it before
  // anything is put there.
  void require_lock() const;
  // Of a remote whose objects are locked: puts the note of the duration there, if it is lost or
  // shorter than this store's, and warns of each that differs. REQUIRES: file().lock.
  void follow_lock_note();
  // All locks were looked at, at this time. Durable on return. REQUIRES: file().lock.
  void note_renewed(std::int64_t time_ns);
  // Adds a sentence to warnings().
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  // Keeps a copy of the key slots that a remote encrypted by objects has now. Durable on return.
  void note_key_slots(std::vector<std::byte> slots);
  // What a person should know, a sentence each.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }
  // Adds the orders of replicated snapshots to the remote's file. Durable on return.
  void note_replicated(const std::vector<std::uint64_t>& orders);

 private:
  void check_key(const ObjectsKeyEntry& key, bool is_new);
  void note_loss(const Head& newest);
  bool is_loss_noted() const noexcept {
    return file_.head_number != 0 && file_.head_hash == base::Sha256{};
  }
  void require_newer(const StoredHead& newest) const;
  std::vector<std::byte> slots_to_put() const;
  store::StoreDirectory& store_;
  const std::string name_;
  std::unique_ptr<base::File> lock_;
  RemoteFile file_;
  std::shared_ptr<ObjectStore> objects_;
  std::unique_ptr<LocalCache> cache_;
  std::unique_ptr<Remote> remote_;
  SlotsFrom slots_from_;                   // of objects that were opened here
  std::vector<std::byte> unopened_slots_;  // of follow_slots_there()
  std::vector<std::string> warnings_;
  bool has_lost_ = false;
};

}  // namespace vellum::remote
