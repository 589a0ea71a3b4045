#include "remote/session/session.hpp"

#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "base/files/new_file.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/session/remote_keys.hpp"
#include "remote/session/remote_lock.hpp"

namespace vellum::remote {
namespace {

constexpr const char* kLockName = "lock";

std::unique_ptr<base::File> lock_remotes(store::StoreDirectory& store) {
  const std::string path = remotes_directory(store) + "/" + kLockName;
  base::ensure_directory(store.fs(), remotes_directory(store));
  try {
    store.fs().open(path, base::OpenMode::create_new);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
  }
  auto file = store.fs().open(path, base::OpenMode::read_write);
  if (!file->try_lock_exclusive()) {
    fail(Errc::busy, "{}: another push or pull is active{}", store.path(),
         base::lock_holders(path));
  }
  return file;
}

}  // namespace

Session::Session(store::StoreDirectory& store, const std::string& name,
                 std::shared_ptr<ObjectStore> objects, SlotsFrom from)
    : store_(store), name_(name), file_(read_remote_file(store, name)), slots_from_(from) {
  lock_ = lock_remotes(store);
  file_ = read_remote_file(store, name);  // now under the lock
  if (objects == nullptr) objects = open_object_store(store.fs(), file_.url);
  const bool opens = objects->objects_key() == nullptr;
  objects_ = opened_objects(store, file_, std::move(objects), from);
  if (!opens) slots_from_ = SlotsFrom::remote;
  if (const auto key = key_entry_of(*objects_)) check_key(*key, opens);
  if (file_.lock.has_value() && objects_->versions() != nullptr) {
    lock_puts(*objects_, file_.lock->duration);
  }
  cache_ = std::make_unique<LocalCache>(
      store.fs(), remotes_directory(store) + "/" + kRemoteCacheName, store.tmp_directory());
  remote_ = std::make_unique<Remote>(*objects_, store.store_seal(), cache_.get(), name);
}

void set_remote_url(store::StoreDirectory& store, const std::string& name, const std::string& url) {
  require_url(url);
  require_outside(store, url);
  const auto objects = opened_objects(store, read_remote_file(store, name),
                                      open_object_store(store.fs(), url), SlotsFrom::remote);
  require_same_store(*objects, store);
  const Session session(store, name, objects);
  session.require_lock();
  RemoteFile file = session.file();
  if (file.lock.has_value()) {
    objects->versions()->require_lock();
    file.lock->renewed_ns = 0;  // of that place, nothing is known
  }
  file.url = url;
  file.key_slots_hash = {};
  write_remote_file(store, name, file, true);
}

const SeenBranch* Session::find(const std::string& branch) const noexcept {
  for (const SeenBranch& seen : file_.branches) {
    if (seen.name == branch) return &seen;
  }
  return nullptr;
}

StoredHead Session::newest_head(bool only_newer) {
  StoredHead out = remote_->newest_head();
  if (only_newer) require_newer(out);
  const std::uint64_t number = out.head.number;
  if (number > file_.head_number || (number == file_.head_number && out.hash == file_.head_hash)) {
    return out;
  }
  if (file_.head_number != 0 && !is_loss_noted()) note_lost(out.head);
  return out;
}

StoredHead Session::mended_newest_head() {
  bool is_mended = false;
  try {
    is_mended = remote_->restore_newest_head();
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
    fail(Errc::corrupted, "{}; `vellum repair {} --from STORE` from another store may have a copy",
         e.what(), objects_->url());
  }
  if (is_mended)
    warn(fmt::format("{}: its newest head was damaged, and is put again", objects_->url()));
  return newest_head();
}

StoredHead Session::readable_newest_head() {
  try {
    return newest_head();
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
  }
  return mended_newest_head();
}

// Other stores may have pushed since this one has looked: their heads may be in an older copy, too.
std::uint64_t Session::number_after_loss() const noexcept {
  constexpr std::uint64_t kMargin = 1u << 20;
  return is_loss_noted() ? file_.head_number + kMargin : 0;
}

void Session::note_lost(const Head& newest) {
  has_lost_ = true;
  note_loss(newest);
  file_.replicated = {};
  file_.key_slots_hash = {};
  file_.head_hash = {};
  write_remote_file(store_, name_, file_, true);
}

void Session::note_loss(const Head& newest) {
  const std::string& url = objects_->url();
  warnings_.push_back(
      newest.number == 0
          ? fmt::format("{}: the remote is empty, and had versions: a push fills it again", url)
          : fmt::format("{}: the remote has lost versions: a push sends this store's again", url));
}

// gc deletes a witness before any later head: as long as that of `newest` is there, so is each later
// head that was there.
std::string Session::going_back(const StoredHead& newest) const {
  const HeadId seen = file_.seen_head, now = newest.head.id(), witness = newest.head.witness();
  if (seen.number == 0 || newest.hash == file_.seen_hash || newest.head.before == file_.seen_hash)
    return "";
  const bool is_older = now.number < seen.number;
  const bool is_other =
      now.number == seen.number || (witness.number != 0 && witness.number <= seen.number &&
                                    !remote_->has_head(seen) && remote_->has_head(witness));
  if (!is_older && !is_other) return "";
  return fmt::format(
      "{}: the remote shows head {}, {}: this store has seen head {}. It was restored, or somebody "
      "has exchanged it",
      objects_->url(), now.number, is_older ? "an older copy of it" : "on another line",
      seen.number);
}

void Session::require_newer(const StoredHead& newest) const {
  const std::string problem = going_back(newest);
  if (!problem.empty()) fail(Errc::untrusted, "{}", problem);
  const std::uint64_t number = newest.head.number;
  if (number > file_.head_number || (number == file_.head_number && newest.hash == file_.head_hash))
    return;
  // A pull that takes over accepts an older one, although the loss is noted until the next push.
  const bool is_accepted =
      is_loss_noted() && file_.seen_head.number != 0 && file_.seen_head.number < file_.head_number;
  if (file_.head_number != 0 && !is_accepted)
    fail(Errc::untrusted, "{}: the remote has lost versions that this store has sent",
         objects_->url());
}

void Session::note_seen(const StoredHead& newest, bool accepts_older) {
  if (newest.head.number == 0 || file_.seen_hash == newest.hash) return;
  if (newest.head.number <= file_.seen_head.number && !accepts_older) return;
  if (is_loss_noted() && newest.head.number < file_.head_number && !accepts_older) return;
  file_.seen_head = newest.head.id();
  file_.seen_hash = newest.hash;
  write_remote_file(store_, name_, file_, true);
}

bool Session::remembers(const StoredHead& newest) const {
  return file_.seen_head.number != 0 ||
         std::ranges::any_of(newest.head.versions, [](const RemoteVersion& version) {
           return version.ref.signature.has_value();
         });
}

void Session::published(const StoredHead& head) noexcept {
  assert(head.head.number != 0);
  if (remembers(head) && head.head.number > file_.seen_head.number) {
    file_.seen_head = head.head.id();
    file_.seen_hash = head.hash;
  }
  file_.head_number = head.head.number;
  file_.head_hash = head.hash;
}

// `is_new`: the key was opened just now, and the store keeps a copy of the slots that have opened it.
void Session::check_key(const ObjectsKeyEntry& key, bool is_new) {
  if (!file_.objects_key.has_value() || key.fingerprint != file_.objects_key->fingerprint) {
    fail(Errc::wrong_key, "{}: the store knows its remote '{}' with another key", objects_->url(),
         name_);
  }
  if (!is_new || key == file_.objects_key) return;
  file_.objects_key = key;
  write_remote_file(store_, name_, file_, true);
}

// The slots of the remote follow changes that were made here. A copy of the store that has not
// changed its own slots does not undo the changes of another one.
bool Session::follow_key_slots(bool looks) {
  if (file_.objects_key.has_value()) {
    if (!looks) return false;
    const auto slots = whole_slots_there(*objects_, store_);
    const bool is_bad =
        slots_from_ == SlotsFrom::remote_or_store && slots != file_.objects_key->slots;
    if (!slots.empty() && !is_bad) return false;
    if (!slots.empty()) {
      warnings_.push_back(fmt::format(
          "{}: its key slots did not open, and are replaced by those that the store knows: a "
          "secret that was removed from them since opens the remote again",
          objects_->url()));
    }
    objects_->put(kKeySlotsKey, slots_to_put());
    return true;
  }
  if (!store_.is_encrypted()) return false;
  const auto slots = key_slots_here(store_);
  const base::Sha256 hash = base::sha256(slots);
  const bool is_lost = looks && whole_slots_there(*objects_, store_).empty();
  if (hash == file_.key_slots_hash && !is_lost) return false;
  objects_->put(kKeySlotsKey, slots);
  file_.key_slots_hash = hash;
  write_remote_file(store_, name_, file_, true);
  return is_lost;
}

std::vector<std::byte> Session::slots_to_put() const {
  if (store_.is_encrypted()) return key_slots_here(store_);
  if (!file_.objects_key.has_value()) return {};
  return unopened_slots_.empty() ? file_.objects_key->slots : unopened_slots_;
}

bool Session::restore_superblock() {
  const bool is_known =
      file_.head_number != 0 || file_.seen_head.number != 0 || !file_.branches.empty();
  const bool was_damaged = remote::restore_superblock(*objects_, store_, slots_to_put(), is_known);
  if (was_damaged) {
    warn(fmt::format("{}: {} was damaged, and is put again", objects_->url(), kSuperblockKey));
  }
  return was_damaged;
}

void Session::follow_slots_there(std::vector<std::byte>& unopened, bool looks) {
  if (!file_.objects_key.has_value()) return;
  const auto slots = looks ? whole_slots_there(*objects_, store_) : std::vector<std::byte>();
  if (slots == file_.objects_key->slots) {
    unopened.clear();
  } else if (!slots.empty() && slots != unopened) {
    restore_superblock();  // they are tried with the one that is there
    if (open_unasked(*objects_, store_, slots)) {
      note_key_slots(slots);
      unopened.clear();
    } else {
      unopened = slots;
      warnings_.push_back(fmt::format(
          "{}: its key slots were changed, and the secret that this process can read opens none: "
          "start it again with another one",
          objects_->url()));
    }
  }
  unopened_slots_ = unopened;
}

void Session::note_key_slots(std::vector<std::byte> slots) {
  assert(file_.objects_key.has_value());
  file_.objects_key->slots = std::move(slots);
  write_remote_file(store_, name_, file_, true);
}

void Session::require_lock() const {
  if (file_.lock.has_value()) lock_puts(*objects_, file_.lock->duration);
}

void Session::follow_lock_note() {
  assert(file_.lock.has_value());
  std::optional<std::chrono::seconds> there;
  try {
    there = lock_note_at(*remote_);
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted && e.code() != Errc::wrong_key) throw;
  }
  if (there.has_value() && *there > file_.lock->duration) {
    warn(fmt::format(
        "{}: {} says {}, and this store locks for {}: remove that object, unless "
        "another store has the longer lock",
        objects_->url(), kLockNoteKey, lock_text(*there), lock_text(file_.lock->duration)));
  }
  if (there.has_value() && *there >= file_.lock->duration) return;
  put_lock_note(*remote_, file_.lock->duration);
  if (file_.lock->renewed_ns == 0) return;
  warnings_.push_back(
      fmt::format("{}: {} was changed there, and is put again", objects_->url(), kLockNoteKey));
}

void Session::note_renewed(std::int64_t time_ns) {
  assert(file_.lock.has_value());
  file_.lock->renewed_ns = time_ns;
  write_remote_file(store_, name_, file_, true);
}

void Session::note_replicated(const std::vector<std::uint64_t>& orders) {
  if (orders.empty()) return;
  for (const std::uint64_t order : orders) file_.replicated.add(order);
  write_remote_file(store_, name_, file_, true);
}

void Session::note(const std::vector<SeenBranch>& branches) {
  if (branches.empty()) return;
  for (const SeenBranch& branch : branches) {
    assert(!branch.name.empty());
    const auto at = std::find_if(file_.branches.begin(), file_.branches.end(),
                                 [&](const SeenBranch& b) { return b.name == branch.name; });
    if (at == file_.branches.end()) {
      file_.branches.push_back(branch);
    } else {
      *at = branch;
    }
  }
  write_remote_file(store_, name_, file_, true);
}

}  // namespace vellum::remote
