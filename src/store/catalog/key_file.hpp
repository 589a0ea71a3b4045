// store/catalog/key_file.hpp: the key slots of an encrypted store (format/key_slots.hpp): opening
// the store with a secret, and changing the slots.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <vellum/key.hpp>

#include "base/crypto/secret.hpp"
#include "base/files/file.hpp"
#include "format/key_slots.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

class PackStore;

inline constexpr const char* kKeysName = "vellum.keys";

// The file of a new store with one slot, and its data key. Errc::invalid_argument unless `source`
// has exactly one secret that can make a slot.
std::vector<std::byte> first_key_slot(const KeySource& source,
                                      std::span<const std::byte> superblock,
                                      const format::Uuid& store_id, const base::Secret& data_key);

// A text that shows which data key a store has, and nothing else about it; and its bytes.
std::string key_fingerprint(const base::Secret& data_key);
using KeyFingerprint = std::array<std::byte, 16>;
KeyFingerprint key_fingerprint_bytes(const base::Secret& data_key);

// A file of key slots, and the bytes of the superblock that they are authenticated with.
struct LockedKey {
  std::string file;  // for messages
  std::vector<std::byte> slots, superblock;
  format::Uuid store_id;
};
// Errc::corrupted: the store at `path` has none.
LockedKey read_locked_key(base::Fs& fs, const std::string& path,
                          std::span<const std::byte> superblock, const format::Uuid& store_id);
// The data key, by the first secret of key_source() that fits a slot, and with a fingerprint that
// the source wants. Errc::wrong_key: there is none. `place` names the store in messages.
base::Secret unlock(const LockedKey& locked, const std::string& place);
// The same, by the secrets of `source`.
base::Secret unlock(const LockedKey& locked, const std::string& place, const KeySource& source);
// Whether key_source() accepts a data key with this fingerprint.
bool is_wanted_fingerprint(const std::string& fingerprint);
// Errc::wrong_key: key_source() wants an encrypted store at `place`, and that one is plain.
// `has_encrypted_remote`: a given secret may be that of a remote (KeySource::or_encrypted_remote).
void require_may_be_plain(const std::string& place, bool has_encrypted_remote = false);

// The slots of a file, and changes of those of an open store. Each change replaces the file, durably.
// Errc::unsupported for a plain store.
std::string key_fingerprint(PackStore& store);
std::vector<KeySlot> key_slots(const LockedKey& locked);
std::vector<KeySlot> key_slots(PackStore& store);
KeySlot add_key_slot(PackStore& store, const KeySource& source, const std::string& label);
// Errc::not_found; invalid_argument for the last slot.
void remove_key_slot(PackStore& store, std::uint32_t number);
// A new slot in place of this one, with its label.
KeySlot replace_key_slot(PackStore& store, std::uint32_t number, const KeySource& source);

// The same changes of slots that are in no store: each returns the bytes that replace them.
struct ChangedSlots {
  std::vector<std::byte> slots;
  KeySlot slot;  // the new one
};
// Reads the slots as they are now. It is called after the secret is known: a person takes time, and
// others may change the slots meanwhile.
using ReadSlots = std::function<LockedKey()>;
ChangedSlots add_key_slot(const ReadSlots& read, const base::Secret& data_key,
                          const KeySource& source, const std::string& label);
std::vector<std::byte> remove_key_slot(const LockedKey& locked, std::uint32_t number);
ChangedSlots replace_key_slot(const ReadSlots& read, const base::Secret& data_key,
                              std::uint32_t number, const KeySource& source);

}  // namespace vellum::store
