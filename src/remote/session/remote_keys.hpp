// remote/session/remote_keys.hpp: the keys of a remote.
//
// The remote of an encrypted store is encrypted with the store's data key, and has key slots of its
// own, which follow those of the store. The remote of a plain store may be encrypted by objects
// (remote/seal/sealed_objects.hpp): it has a data key of its own, and its slots are changed there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/wire/seal.hpp"
#include "remote/engine/object_store.hpp"
#include "remote/objects/remote_file.hpp"
#include "remote/seal/remote_superblock.hpp"
#include "store/catalog/key_file.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

struct UnlockedRemote {
  RemoteSuperblock superblock;
  std::vector<std::byte> key_slots;  // of an encrypted store: the object; otherwise empty
  format::StoreSeal seal;            // of a store with the same versions
  // To read and write with that seal. Encrypted by objects: they are opened.
  std::shared_ptr<ObjectStore> objects;
};

// Errc::not_found: no remote; wrong_key: it is encrypted, and key_source() has no secret for it, or
// plain, and key_source() wants an encrypted one.
UnlockedRemote unlock_remote(std::shared_ptr<ObjectStore> objects);
// The same, with the superblock that was read there.
UnlockedRemote unlock_remote(std::shared_ptr<ObjectStore> objects,
                             const RemoteSuperblock& superblock);
// The same. REQUIRES: `objects` outlives the result.
UnlockedRemote unlock_remote(ObjectStore& objects);

// The key slots there. Errc::corrupted: they are missing. REQUIRES: the superblock has keys.
store::LockedKey read_remote_slots(ObjectStore& objects, const RemoteSuperblock& superblock);
// The key slots there, if they are whole; they may be older ones, or open nothing. Empty: they are
// lost or damaged. REQUIRES: the store is encrypted, or the objects are.
std::vector<std::byte> whole_slots_there(ObjectStore& objects, const store::StoreDirectory& store);
// Whether these slots open without asking a person. Errc::wrong_key: another remote is there.
// REQUIRES: the objects are opened.
bool open_unasked(ObjectStore& objects, const store::StoreDirectory& store,
                  const std::vector<std::byte>& slots);
// The bytes of the store's file of key slots. REQUIRES: it is encrypted.
std::vector<std::byte> key_slots_here(const store::StoreDirectory& store);

// The superblock that the store's remote behind these objects has.
RemoteSuperblock superblock_there(const ObjectStore& objects, const store::StoreDirectory& store);

// Errc::invalid_argument: the superblock that was read at the remote is another store's; wrong_key:
// one of the two is encrypted, the other is not, or with another key.
void require_same_superblock(const RemoteSuperblock& there, const RemoteSuperblock& ours,
                             const std::string& url);

enum class SlotsFrom {
  remote,           // the store's copy counts only where the remote has none, or does not answer
  remote_or_store,  // the copy counts also where the slots of the remote do not open
  store_first       // without a request, unless the copy does not open
};
// The objects of a remote of the store as its other code uses them: opened, if the store knows the
// remote as encrypted by objects. The slots of their key have opened it in this process, or are the
// store's copy. Errc::wrong_key: as of unlock_remote(), or another remote is in its place: a plain
// one, or one with another data key; or the remote is plain, and key_source() wants an encrypted
// one. Nothing is written there.
std::shared_ptr<ObjectStore> opened_objects(const store::StoreDirectory& store,
                                            const RemoteFile& file,
                                            std::shared_ptr<ObjectStore> objects, SlotsFrom from);

// A new data key with one slot for the secret of `source`, and the objects opened with it. The
// remote has both on return. Errc::already_exists: another creator was faster.
std::shared_ptr<ObjectStore> create_objects_key(std::shared_ptr<ObjectStore> objects,
                                                const store::StoreDirectory& store,
                                                const KeySource& source);

// The key slots of a remote that is encrypted by objects, to be listed and changed. A change begins
// with the slots as they are once its secret is known. Of two puts at once, the later one counts;
// Errc::busy: it was another program's.
class RemoteKeySlots {
 public:
  // Errc::unsupported: the remote is encrypted otherwise, or not at all; as of unlock_remote().
  explicit RemoteKeySlots(const std::shared_ptr<ObjectStore>& objects);
  const std::string& fingerprint() const noexcept { return fingerprint_; }
  const std::vector<std::byte>& bytes() const noexcept { return locked_.slots; }
  const std::shared_ptr<ObjectStore>& opened() const noexcept { return objects_; }
  std::vector<KeySlot> list() const { return store::key_slots(locked_); }
  KeySlot add(const KeySource& source, const std::string& label);
  void remove(std::uint32_t number);
  KeySlot replace(std::uint32_t number, const KeySource& source);

 private:
  const store::LockedKey& read();
  void put(std::vector<std::byte> slots);
  std::shared_ptr<ObjectStore> objects_;  // opened
  RemoteSuperblock superblock_;
  store::LockedKey locked_;
  std::string fingerprint_;
};

}  // namespace vellum::remote
