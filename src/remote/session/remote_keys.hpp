// remote/session/remote_keys.hpp: the keys of a remote. The remote of an encrypted store is encrypted
// with the store's data key, and has key slots of its own, which follow those of the store.
#pragma once

#include <vector>

#include "format/wire/seal.hpp"
#include "format/wire/superblock.hpp"
#include "remote/engine/object_store.hpp"
#include "store/catalog/key_file.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

struct UnlockedRemote {
  format::Superblock superblock;
  std::vector<std::byte> key_slots;  // the object; empty: the remote is plain
  format::StoreSeal seal;
};

// Errc::not_found: no remote; wrong_key: it is encrypted, and key_source() has no secret for it, or
// plain, and key_source() wants an encrypted one.
UnlockedRemote unlock_remote(ObjectStore& objects);
// The same, with the superblock that was read there.
UnlockedRemote unlock_remote(ObjectStore& objects, const format::Superblock& superblock);

// The key slots there. Errc::corrupted: they are missing. REQUIRES: the superblock is encrypted.
store::LockedKey read_remote_slots(ObjectStore& objects, const format::Superblock& superblock);
// Whether the remote has key slots of this store, whole, though perhaps older ones. REQUIRES: the
// store is encrypted.
bool has_key_slots(ObjectStore& objects, const store::StoreDirectory& store);
// The bytes of the store's file of key slots. REQUIRES: it is encrypted.
std::vector<std::byte> key_slots_here(const store::StoreDirectory& store);

}  // namespace vellum::remote
