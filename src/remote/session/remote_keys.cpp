#include "remote/session/remote_keys.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "format/key_slots.hpp"
#include "remote/objects/object_key.hpp"
#include "remote/seal/sealed_objects.hpp"
#include "remote/session/remote.hpp"

namespace vellum::remote {
namespace {

using Keys = std::shared_ptr<const base::ObjectKeys>;

// The keys that this process uses, each with the slots that have opened it last: a second opening of
// a remote asks no person, and reads no descriptor, again.
class KeysInUse {
 public:
  static KeysInUse& instance() {
    static KeysInUse keys;
    return keys;
  }
  std::optional<ObjectsKey> find(const store::KeyFingerprint& fingerprint) {
    const std::lock_guard lock(mutex_);
    const auto at = keys_.find(fingerprint);
    if (at == keys_.end()) return std::nullopt;
    ObjectsKey out{at->second.keys.lock(), at->second.slots};
    return out.keys == nullptr ? std::nullopt : std::optional(std::move(out));
  }
  void add(const store::KeyFingerprint& fingerprint, const ObjectsKey& key) {
    const std::lock_guard lock(mutex_);
    std::erase_if(keys_, [](const auto& known) { return known.second.keys.expired(); });
    keys_[fingerprint] = {key.keys, key.slots};
  }

 private:
  struct InUse {
    std::weak_ptr<const base::ObjectKeys> keys;
    std::vector<std::byte> slots;
  };
  std::mutex mutex_;  // guards the member below
  std::map<store::KeyFingerprint, InUse> keys_;
};

// Slots that have not opened the key in this process are tried even if the key is in use: they may
// be a forger's, and a secret that was removed from them opens nothing. REQUIRES: the superblock has
// a key of objects, with which the slots are authenticated.
ObjectsKey unlock_objects(const store::LockedKey& locked, const RemoteSuperblock& superblock,
                          const std::string& place, const KeySource& source = key_source()) {
  const store::KeyFingerprint& fingerprint = *superblock.objects_key;
  auto in_use = KeysInUse::instance().find(fingerprint);
  if (in_use.has_value() && in_use->slots == locked.slots &&
      store::is_wanted_fingerprint(base::hex(fingerprint))) {
    return std::move(*in_use);
  }
  Keys keys = std::make_shared<const base::ObjectKeys>(store::unlock(locked, place, source));
  // A holder of a secret could have made slots with another key.
  if (store::key_fingerprint_bytes(keys->data_key()) != fingerprint) {
    fail(Errc::wrong_key, "{}: its key is not that of its superblock", place);
  }
  if (in_use.has_value()) keys = std::move(in_use->keys);  // the same, which others use
  ObjectsKey out{std::move(keys), locked.slots};
  KeysInUse::instance().add(fingerprint, out);
  return out;
}

store::LockedKey locked_key(const ObjectStore& objects, const RemoteSuperblock& superblock,
                            std::vector<std::byte> slots) {
  return {objects.url() + ": " + kKeySlotsKey, std::move(slots),
          encode_remote_superblock(superblock), superblock.store_id};
}

// Owns nothing.
std::shared_ptr<ObjectStore> borrowed(ObjectStore& objects) {
  return {std::shared_ptr<void>(), &objects};
}

bool are_good_slots(std::span<const std::byte> slots, const format::Uuid& store_id) {
  format::KeySlots decoded;
  return format::decode_key_slots(slots, store_id, decoded) == nullptr;
}

}  // namespace

UnlockedRemote unlock_remote(std::shared_ptr<ObjectStore> objects) {
  const RemoteSuperblock superblock = read_superblock(*objects);
  return unlock_remote(std::move(objects), superblock);
}

UnlockedRemote unlock_remote(ObjectStore& objects) { return unlock_remote(borrowed(objects)); }

UnlockedRemote unlock_remote(std::shared_ptr<ObjectStore> objects,
                             const RemoteSuperblock& superblock) {
  const format::StoreSeal plain = superblock.store_id;
  if (!superblock.has_keys()) {
    store::require_may_be_plain(objects->url());
    return {superblock, {}, plain, std::move(objects)};
  }
  if (objects->objects_key() != nullptr) return {superblock, {}, plain, std::move(objects)};
  store::LockedKey locked = read_remote_slots(*objects, superblock);
  const std::string place = objects->url();
  if (superblock.objects_key.has_value()) {
    ObjectsKey key = unlock_objects(locked, superblock, place);
    return {superblock, {}, plain, open_sealed_objects(std::move(objects), std::move(key))};
  }
  auto keys = std::make_shared<const base::StoreKeys>(store::unlock(locked, place));
  return {superblock,
          std::move(locked.slots),
          {superblock.store_id, std::move(keys)},
          std::move(objects)};
}

store::LockedKey read_remote_slots(ObjectStore& objects, const RemoteSuperblock& superblock) {
  assert(superblock.has_keys());
  store::LockedKey out = locked_key(objects, superblock, {});
  const auto read = [&] { out.slots = objects.get(kKeySlotsKey, format::kMaxKeySlotsBytes); };
  try {
    read();
    // They may have been damaged in transit.
    if (!are_good_slots(out.slots, superblock.store_id)) read();
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    fail(Errc::corrupted, "{}: missing: the remote is encrypted, and its key was there", out.file);
  }
  return out;
}

std::vector<std::byte> key_slots_here(const store::StoreDirectory& store) {
  return store::read_locked_key(store.fs(), store.path(), {}, store.superblock().store_id).slots;
}

std::vector<std::byte> whole_slots_there(ObjectStore& objects, const store::StoreDirectory& store) {
  const RemoteSuperblock superblock = superblock_there(objects, store);
  try {
    auto slots = read_remote_slots(objects, superblock).slots;
    if (are_good_slots(slots, superblock.store_id)) return slots;
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
  }
  return {};
}

bool open_unasked(ObjectStore& objects, const store::StoreDirectory& store,
                  const std::vector<std::byte>& slots) {
  const RemoteSuperblock superblock = superblock_there(objects, store);
  require_same_superblock(read_superblock(objects), superblock, objects.url());
  KeySource source = key_source();
  source.prompt = nullptr;
  source.passphrase_fd = -1;
  try {
    unlock_objects(locked_key(objects, superblock, slots), superblock, objects.url(), source);
    return true;
  } catch (const Error&) {
    return false;
  }
}

RemoteSuperblock superblock_there(const ObjectStore& objects, const store::StoreDirectory& store) {
  RemoteSuperblock out{store.superblock(), std::nullopt};
  if (const ObjectsKey* const key = objects.objects_key()) {
    out.objects_key = store::key_fingerprint_bytes(key->keys->data_key());
  }
  return out;
}

void require_same_superblock(const RemoteSuperblock& there, const RemoteSuperblock& ours,
                             const std::string& url) {
  if (there.store_id != ours.store_id) {
    fail(Errc::invalid_argument,
         "{}: the remote has the versions of another store: choose another URL, or use a clone of "
         "this one (`vellum clone {} DIR`)",
         url, url);
  }
  if (there.has_keys() && !ours.has_keys()) {
    fail(Errc::wrong_key, "{}: the remote is encrypted, and the store is not{}", url,
         there.objects_key.has_value() ? ": it has to know the remote so (remote add --encrypt)"
                                       : "");
  }
  if (!there.has_keys() && ours.has_keys()) {
    fail(Errc::wrong_key, "{}: the remote is not encrypted, and {} (exchanged?)", url,
         ours.encrypted ? "the store is" : "the store knows it as encrypted");
  }
  if (there.encrypted != ours.encrypted) {
    fail(Errc::wrong_key, "{}: the remote is that of {}", url,
         there.encrypted ? "an encrypted store" : "a plain store");
  }
  if (there.objects_key != ours.objects_key) {
    fail(Errc::wrong_key, "{}: the remote has another key than the store knows (exchanged?)", url);
  }
}

namespace {

struct SlotsThere {
  std::vector<std::byte> slots;
  // False: it is lost, and the slots may be another creator's, who did not go on.
  bool has_superblock = false;
};

// The slots at the remote; the store's copy if it has none, or does not answer. Errc::wrong_key:
// another remote is there.
SlotsThere slots_for(ObjectStore& objects, const RemoteSuperblock& expected,
                     const std::vector<std::byte>& copy) {
  SlotsThere out;
  const auto require_answer = [](const Error& e) {
    if (e.code() != Errc::not_found && e.code() != Errc::corrupted &&
        e.code() != Errc::not_a_store && e.code() != Errc::io) {
      throw;
    }
  };
  try {
    require_same_superblock(read_superblock(objects), expected, objects.url());
    out.has_superblock = true;
  } catch (const Error& e) {
    require_answer(e);
    if (e.code() == Errc::io) return {copy, true};
  }
  try {
    out.slots = read_remote_slots(objects, expected).slots;
  } catch (const Error& e) {
    require_answer(e);
  }
  if (!are_good_slots(out.slots, expected.store_id)) out.slots = copy;
  return out;
}

// Whether a secret could not be tried: not one that opens nothing.
bool is_untried(const Error& e) {
  return e.code() == Errc::invalid_argument || e.code() == Errc::unsupported;
}

// The key by slots of the remote that are not the store's copy.
ObjectsKey open_changed(const std::function<ObjectsKey(const std::vector<std::byte>&)>& open_with,
                        const SlotsThere& there, const ObjectsKeyEntry& known, SlotsFrom from,
                        const std::string& url, const std::string& store) {
  try {
    return open_with(there.slots);
  } catch (const Error& e) {
    if (e.code() != Errc::wrong_key && !is_untried(e)) throw;
    if (from == SlotsFrom::remote_or_store || !there.has_superblock) return open_with(known.slots);
    const auto in_use = KeysInUse::instance().find(known.fingerprint);
    // A descriptor is read once. The store keeps its copy.
    if (is_untried(e) && in_use.has_value()) return {in_use->keys, known.slots};
    fail(e.code(),
         "{}; they are not those that the store knows: if nobody has changed them on purpose, "
         "`vellum repair {} --from {}` puts these back",
         e.what(), url, store);
  }
}

}  // namespace

std::shared_ptr<ObjectStore> opened_objects(const store::StoreDirectory& store,
                                            const RemoteFile& file,
                                            std::shared_ptr<ObjectStore> objects, SlotsFrom from) {
  if (!file.objects_key.has_value() && !store.is_encrypted()) {
    store::require_may_be_plain(objects->url());
  }
  if (!file.objects_key.has_value() || objects->objects_key() != nullptr) return objects;
  const RemoteSuperblock expected{store.superblock(), file.objects_key->fingerprint};
  const auto& copy = file.objects_key->slots;
  const std::string place = objects->url();
  const auto open_with = [&](const std::vector<std::byte>& slots) {
    return unlock_objects(locked_key(*objects, expected, slots), expected, place);
  };
  ObjectsKey key;
  if (from == SlotsFrom::store_first) {
    try {
      key = open_with(copy);
    } catch (const Error& e) {  // another machine may have changed them
      if (e.code() != Errc::wrong_key) throw;
      const auto slots = slots_for(*objects, expected, copy).slots;
      if (slots == copy) throw;
      key = open_with(slots);
    }
  } else {
    const SlotsThere there = slots_for(*objects, expected, copy);
    key = there.slots == copy
              ? open_with(copy)
              : open_changed(open_with, there, *file.objects_key, from, place, store.path());
  }
  return open_sealed_objects(std::move(objects), std::move(key));
}

// The slots come first: a remote with such a superblock has them. They may be another creator's,
// who did not go on: those of the superblock replace them.
std::shared_ptr<ObjectStore> create_objects_key(std::shared_ptr<ObjectStore> objects,
                                                const store::StoreDirectory& store,
                                                const KeySource& source) {
  assert(!store.is_encrypted() && objects->objects_key() == nullptr);
  const base::Secret data_key = base::Secret::random(base::kKeyBytes);
  const RemoteSuperblock superblock{store.superblock(), store::key_fingerprint_bytes(data_key)};
  const auto bytes = encode_remote_superblock(superblock);
  const auto slots = store::first_key_slot(source, bytes, superblock.store_id, data_key);
  objects->put_if_absent(kKeySlotsKey, slots);
  if (!objects->put_if_absent(kSuperblockKey, bytes)) {
    fail(Errc::already_exists, "{}: another program has created the remote meanwhile",
         objects->url());
  }
  objects->put(kKeySlotsKey, slots);
  if (objects->get(kKeySlotsKey, format::kMaxKeySlotsBytes) != slots) {
    fail(Errc::io, "{}: {}: reads back other bytes than were written", objects->url(),
         kKeySlotsKey);
  }
  const ObjectsKey key{std::make_shared<const base::ObjectKeys>(data_key), slots};
  KeysInUse::instance().add(*superblock.objects_key, key);
  return open_sealed_objects(std::move(objects), key);
}

RemoteKeySlots::RemoteKeySlots(const std::shared_ptr<ObjectStore>& objects) {
  superblock_ = read_superblock(*objects);
  if (!superblock_.objects_key.has_value()) {
    fail(Errc::unsupported, "{}: the remote has no keys of its own", objects->url());
  }
  objects_ = unlock_remote(objects, superblock_).objects;
  read();
  fingerprint_ = base::hex(*superblock_.objects_key);
}

const store::LockedKey& RemoteKeySlots::read() {
  require_same_superblock(read_superblock(*objects_), superblock_, objects_->url());
  locked_ = read_remote_slots(*objects_, superblock_);
  return locked_;
}

void RemoteKeySlots::put(std::vector<std::byte> slots) {
  objects_->put(kKeySlotsKey, slots);
  if (objects_->get(kKeySlotsKey, format::kMaxKeySlotsBytes) != slots) {
    fail(Errc::busy,
         "{}: {}: another program has changed the key slots at the same time: list them, and try "
         "again",
         objects_->url(), kKeySlotsKey);
  }
  locked_.slots = std::move(slots);
}

KeySlot RemoteKeySlots::add(const KeySource& source, const std::string& label) {
  auto changed = store::add_key_slot([this] { return read(); },
                                     objects_->objects_key()->keys->data_key(), source, label);
  put(std::move(changed.slots));
  return changed.slot;
}

void RemoteKeySlots::remove(std::uint32_t number) { put(store::remove_key_slot(read(), number)); }

KeySlot RemoteKeySlots::replace(std::uint32_t number, const KeySource& source) {
  auto changed = store::replace_key_slot([this] { return read(); },
                                         objects_->objects_key()->keys->data_key(), number, source);
  put(std::move(changed.slots));
  return changed.slot;
}

}  // namespace vellum::remote
