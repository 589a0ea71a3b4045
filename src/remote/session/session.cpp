#include "remote/session/session.hpp"

#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "base/files/new_file.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/session/remote_keys.hpp"

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
                 std::shared_ptr<ObjectStore> objects)
    : store_(store), name_(name), file_(read_remote_file(store, name)) {
  lock_ = lock_remotes(store);
  file_ = read_remote_file(store, name);  // now under the lock
  objects_ = objects != nullptr ? std::move(objects) : open_object_store(store.fs(), file_.url);
  cache_ = std::make_unique<LocalCache>(
      store.fs(), remotes_directory(store) + "/" + kRemoteCacheName, store.tmp_directory());
  remote_ = std::make_unique<Remote>(*objects_, store.store_seal(), cache_.get(), name);
}

void set_remote_url(store::StoreDirectory& store, const std::string& name, const std::string& url) {
  require_url(url);
  require_same_store(*open_object_store(store.fs(), url), store);
  const Session session(store, name);
  RemoteFile file = session.file();
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

StoredHead Session::newest_head() {
  StoredHead out = remote_->newest_head();
  const std::uint64_t number = out.head.number;
  if (number > file_.head_number || (number == file_.head_number && out.hash == file_.head_hash)) {
    return out;
  }
  if (file_.head_number != 0) note_lost();
  return out;
}

void Session::note_lost() {
  has_lost_ = true;
  file_.replicated = {};
  file_.key_slots_hash = {};
  file_.head_number = 0;
  write_remote_file(store_, name_, file_, true);
}

void Session::published(const StoredHead& head) noexcept {
  assert(head.head.number != 0);
  file_.head_number = head.head.number;
  file_.head_hash = head.hash;
}

// The slots of the remote follow changes that were made here. A copy of the store that has not
// changed its own slots does not undo the changes of another one.
bool Session::follow_key_slots(bool looks) {
  if (!store_.is_encrypted()) return false;
  const auto slots = key_slots_here(store_);
  const base::Sha256 hash = base::sha256(slots);
  const bool is_lost = looks && !has_key_slots(*objects_, store_);
  if (hash == file_.key_slots_hash && !is_lost) return false;
  objects_->put(kKeySlotsKey, slots);
  file_.key_slots_hash = hash;
  write_remote_file(store_, name_, file_, true);
  return is_lost;
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
