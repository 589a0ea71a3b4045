#include "remote/session/remote_keys.hpp"

#include <cassert>

#include "base/fail.hpp"
#include "format/key_slots.hpp"
#include "remote/objects/object_key.hpp"
#include "remote/session/remote.hpp"

namespace vellum::remote {

UnlockedRemote unlock_remote(ObjectStore& objects) {
  return unlock_remote(objects, read_superblock(objects));
}

UnlockedRemote unlock_remote(ObjectStore& objects, const format::Superblock& superblock) {
  if (!superblock.encrypted) {
    store::require_may_be_plain(objects.url());
    return {superblock, {}, superblock.store_id};
  }
  store::LockedKey locked = read_remote_slots(objects, superblock);
  auto keys = std::make_shared<const base::StoreKeys>(store::unlock(locked, objects.url()));
  return {superblock, std::move(locked.slots), {superblock.store_id, std::move(keys)}};
}

store::LockedKey read_remote_slots(ObjectStore& objects, const format::Superblock& superblock) {
  assert(superblock.encrypted);
  store::LockedKey out{objects.url() + ": " + kKeySlotsKey,
                       {},
                       format::encode_superblock(superblock),
                       superblock.store_id};
  const auto read = [&] { out.slots = objects.get(kKeySlotsKey, format::kMaxKeySlotsBytes); };
  try {
    read();
    format::KeySlots slots;
    // They may have been damaged in transit.
    if (format::decode_key_slots(out.slots, superblock.store_id, slots) != nullptr) read();
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    fail(Errc::corrupted, "{}: missing: the remote is encrypted, and its key was there", out.file);
  }
  return out;
}

std::vector<std::byte> key_slots_here(const store::StoreDirectory& store) {
  return store::read_locked_key(store.fs(), store.path(), {}, store.superblock().store_id).slots;
}

bool has_key_slots(ObjectStore& objects, const store::StoreDirectory& store) {
  assert(store.is_encrypted());
  format::KeySlots slots;
  try {
    const auto locked = read_remote_slots(objects, store.superblock());
    return format::decode_key_slots(locked.slots, store.superblock().store_id, slots) == nullptr;
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
    return false;
  }
}

}  // namespace vellum::remote
