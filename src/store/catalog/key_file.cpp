#include "store/catalog/key_file.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <string_view>

#include "base/bytes/hex.hpp"
#include "base/crypto/bech32.hpp"
#include "base/crypto/hkdf.hpp"
#include "base/crypto/secret_input.hpp"
#include "base/fail.hpp"
#include "format/wire/superblock.hpp"
#include "store/catalog/lock/name_lock.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/packs/header_error.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {
namespace {

using base::Secret;
using format::KeySlotKind;
using format::KeySlots;
using format::StoredKeySlot;

constexpr std::size_t kMinKeyFileBytes = 32;
constexpr std::string_view kRecipientPrefix = "age", kIdentityPrefix = "age-secret-key-";
constexpr const char* kHowToGiveKeys =
    "VELLUM_PASSPHRASE_FILE, VELLUM_KEY_FILE, VELLUM_IDENTITY_FILE or VELLUM_KEY_COMMAND";

// A secret as it was given, and the kind of slot that it opens.
struct GivenSecret {
  KeySlotKind kind;
  Secret secret;  // of kind recipient: the identity; none, to make a slot
};

Secret key_file_content(const std::string& path) {
  Secret out = base::read_secret_file(path);
  if (out.size() < kMinKeyFileBytes) {
    fail(Errc::invalid_argument, "{}: a key file has at least {} random bytes", path,
         kMinKeyFileBytes);
  }
  return out;
}

// A line of age-keygen's file. Comments begin with '#'.
Secret identity_of(const std::string& path) {
  const Secret file = base::read_secret_file(path);
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.size());
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find_first_of("\r\n"));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    Secret key = base::bech32_decode(kIdentityPrefix, line);
    if (key.size() == base::kKeyBytes) return key;
  }
  fail(Errc::invalid_argument, "{}: no identity of age (AGE-SECRET-KEY-1...)", path);
}

base::X25519Public recipient_of(const std::string& text) {
  const Secret bytes = base::bech32_decode(kRecipientPrefix, text);
  if (bytes.size() != base::kKeyBytes) {
    // The text may be a secret, given by mistake: it is not repeated.
    fail(Errc::invalid_argument, "the text given as a recipient is none of age (age1...)");
  }
  base::X25519Public out;
  std::ranges::copy(bytes.bytes(), out.begin());
  return out;
}

Secret one_line(Secret secret, const std::string& what) {
  base::keep_first_line(secret);
  if (secret.empty()) fail(Errc::invalid_argument, "{}: the passphrase is empty", what);
  return secret;
}

Secret prompted(const KeySource& source, const std::string& question) {
  Secret out(base::kMaxSecretBytes);
  const std::size_t length =
      source.prompt(question, reinterpret_cast<char*>(out.bytes().data()), out.size());
  assert(length <= out.size());
  out.shrink(length);
  return out;
}

// The passphrase of file, descriptor or prompt; nullopt: there is none.
std::optional<Secret> passphrase_of(const KeySource& source, const std::string& question) {
  if (!source.passphrase_file.empty()) {
    return one_line(base::read_secret_file(source.passphrase_file), source.passphrase_file);
  }
  if (source.passphrase_fd >= 0) {
    const std::string what = fmt::format("descriptor {}", source.passphrase_fd);
    return one_line(base::read_secret(source.passphrase_fd, what), what);
  }
  if (!source.prompt) return std::nullopt;
  Secret typed = prompted(source, question);
  if (typed.empty()) return std::nullopt;
  return typed;
}

Secret command_output(const std::string& command) {
  return one_line(base::read_secret_command(command), "the output of the key command");
}

// The key that wraps: from the secret and the slot. `secret` of kind recipient: the private key of
// one side, `peer` the public one of the other.
Secret wrapping_key(const StoredKeySlot& slot, const Secret& secret,
                    const base::X25519Public& peer) {
  Secret out(base::kKeyBytes);
  switch (slot.kind) {
    case KeySlotKind::passphrase:
    case KeySlotKind::command:
      return base::argon2id(secret, slot.salt, slot.cost);
    case KeySlotKind::key_file:
      base::hkdf_sha256(secret.bytes(), slot.salt, "vellum key file", out.bytes());
      return out;
    case KeySlotKind::recipient:
      break;
  }
  std::vector<std::byte> salt(slot.ephemeral.begin(), slot.ephemeral.end());
  salt.insert(salt.end(), slot.recipient.begin(), slot.recipient.end());
  base::hkdf_sha256(base::x25519_shared(secret, peer).bytes(), salt, "vellum recipient",
                    out.bytes());
  return out;
}

void wrap(StoredKeySlot& slot, const Secret& wrapping, std::span<const std::byte> superblock,
          const Secret& data_key) {
  // The slot is not secret memory: the key gets there when it is encrypted.
  Secret text(data_key.bytes());
  const std::span<std::byte> out(slot.wrapped), seal = out.last(base::kSealBytes);
  const auto context = format::key_slot_context(slot, superblock);
  base::seal_with(wrapping.bytes(), context, text.bytes(), seal);
  std::ranges::copy(text.bytes(), out.begin());
  // Nothing else will have the key.
  if (!base::open_with(wrapping.bytes(), context, text.bytes(), seal) ||
      !std::ranges::equal(text.bytes(), data_key.bytes())) {
    fail(Errc::io, "key slot {}: the wrapped key does not unwrap", slot.number);
  }
}

// Empty: the secret does not open this slot.
Secret unwrap(const StoredKeySlot& slot, const Secret& secret,
              std::span<const std::byte> superblock) {
  if (slot.kind == KeySlotKind::recipient && base::x25519_public(secret) != slot.recipient) {
    return {};
  }
  const Secret wrapping = wrapping_key(slot, secret, slot.ephemeral);
  const std::span stored(slot.wrapped);
  Secret out(stored.first(base::kKeyBytes));
  const bool good = base::open_with(wrapping.bytes(), format::key_slot_context(slot, superblock),
                                    out.bytes(), stored.last(base::kSealBytes));
  return good ? std::move(out) : Secret();
}

// Whether the source wants this data key. Its fingerprints are separated by commas; none: any key.
bool is_wanted(std::string_view own, std::string_view fingerprints) {
  if (fingerprints.empty()) return true;
  while (!fingerprints.empty()) {
    const std::string_view one = fingerprints.substr(0, fingerprints.find(','));
    if (one == own) return true;
    fingerprints.remove_prefix(std::min(fingerprints.size(), one.size() + 1));
  }
  return false;
}

// Tries secrets until one opens a slot. Slots are hostile until they open: one may hold another data
// key than the wanted one, have no usable public key, or ask for more memory than there is. Such a
// slot does not hide the next.
struct Unlocking {
  const KeySlots& slots;
  std::span<const std::byte> superblock;
  std::string_view fingerprints;
  Secret key;
  bool tried = false, foreign = false;
  std::optional<Error> problem = {};  // of the first secret or slot that could not be tried

  Secret attempt(const StoredKeySlot& slot, const Secret& secret) {
    try {
      return unwrap(slot, secret, superblock);
    } catch (const Error& e) {
      if (e.code() != Errc::invalid_argument && e.code() != Errc::unsupported) throw;
      if (!problem)
        problem.emplace(e.code(), fmt::format("key slot {}: {}", slot.number, e.what()));
      return {};
    }
  }
  // `read` returns the secret. One that cannot be read does not hide the next.
  template <typename Read>
  bool opens_with(KeySlotKind kind, const Read& read) {
    std::optional<Secret> secret;
    try {
      secret = read();
    } catch (const Error& e) {
      // A missing file of a secret is no missing store.
      if (!problem)
        problem.emplace(e.code() == Errc::not_found ? Errc::wrong_key : e.code(), e.what());
    }
    return secret.has_value() && opens({kind, std::move(*secret)});
  }
  bool opens(const GivenSecret& given) {
    tried = true;
    for (const StoredKeySlot& slot : slots.slots) {
      if (slot.kind != given.kind) continue;
      Secret found = attempt(slot, given.secret);
      if (found.empty()) continue;
      if (is_wanted(key_fingerprint(found), fingerprints)) {
        key = std::move(found);
        return true;
      }
      foreign = true;
    }
    return false;
  }
};

bool has_kind(const KeySlots& slots, KeySlotKind kind) {
  return std::ranges::any_of(slots.slots,
                             [kind](const StoredKeySlot& slot) { return slot.kind == kind; });
}

// Tries each secret that may open a slot, until one does. The prompt is last.
bool open_one(const KeySource& source, const std::string& path, Unlocking& unlocking) {
  const KeySlots& slots = unlocking.slots;
  if (!source.key_file.empty() && unlocking.opens_with(KeySlotKind::key_file, [&] {
        return key_file_content(source.key_file);
      })) {
    return true;
  }
  if (!source.identity_file.empty() && unlocking.opens_with(KeySlotKind::recipient, [&] {
        return identity_of(source.identity_file);
      })) {
    return true;
  }
  if (!source.command.empty() && has_kind(slots, KeySlotKind::command) &&
      unlocking.opens_with(KeySlotKind::command, [&] { return command_output(source.command); })) {
    return true;
  }
  return has_kind(slots, KeySlotKind::passphrase) &&
         unlocking.opens_with(KeySlotKind::passphrase, [&] {
           return passphrase_of(source, fmt::format("Passphrase of {}: ", path));
         });
}

// The one secret of `source` for a new slot. May ask a person, so no lock is held.
GivenSecret new_secret(const KeySource& source) {
  const bool has_passphrase = !source.passphrase_file.empty() || source.passphrase_fd >= 0;
  const int given = int{!source.key_file.empty()} + int{!source.recipient.empty()} +
                    int{!source.command.empty()} + int{has_passphrase};
  if (given > 1 || (given == 0 && !source.prompt)) {
    fail(Errc::invalid_argument,
         "a key slot needs one secret: a passphrase, a key file, a recipient or a command");
  }
  if (!source.recipient.empty()) return {KeySlotKind::recipient, {}};
  if (!source.key_file.empty()) return {KeySlotKind::key_file, key_file_content(source.key_file)};
  if (!source.command.empty()) return {KeySlotKind::command, command_output(source.command)};
  auto passphrase = passphrase_of(source, "New passphrase: ");
  if (!passphrase) fail(Errc::invalid_argument, "the passphrase is empty");
  return {KeySlotKind::passphrase, std::move(*passphrase)};
}

// A slot for a secret of new_secret(source). `slot` has number and label.
StoredKeySlot new_slot(const KeySource& source, const GivenSecret& given,
                       std::span<const std::byte> superblock, const Secret& data_key,
                       StoredKeySlot slot) {
  slot.kind = given.kind;
  if (given.kind == KeySlotKind::recipient) {
    const Secret ephemeral = base::new_x25519_key();
    slot.recipient = recipient_of(source.recipient);
    slot.ephemeral = base::x25519_public(ephemeral);
    wrap(slot, wrapping_key(slot, ephemeral, slot.recipient), superblock, data_key);
    return slot;
  }
  base::fill_random(slot.salt);
  wrap(slot, wrapping_key(slot, given.secret, {}), superblock, data_key);
  return slot;
}

KeySlot described(const StoredKeySlot& slot) {
  KeySlot out{slot.number, static_cast<KeySlot::Kind>(slot.kind), slot.label, ""};
  if (slot.kind == KeySlotKind::recipient) {
    out.recipient = base::bech32_encode(kRecipientPrefix, slot.recipient);
  }
  return out;
}

KeySlots decoded_slots(const LockedKey& locked) {
  KeySlots out;
  if (const char* problem = format::decode_key_slots(locked.slots, locked.store_id, out)) {
    fail_header(locked.file, locked.slots, format::checksum_seed(locked.store_id), problem);
  }
  return out;
}

void require_encrypted(PackStore& store) {
  if (store.is_encrypted()) return;
  fail(Errc::unsupported, "{}: the store is not encrypted, and has no keys", store.path());
}

KeySlots read_slots(PackStore& store) {
  require_encrypted(store);
  return decoded_slots(read_locked_key(store.fs(), store.path(), {}, store.superblock().store_id));
}

// Nothing else has the data key: a file that would not be read back is not written.
std::vector<std::byte> readable_slots(const KeySlots& slots, const format::Uuid& store_id) {
  auto out = format::encode_key_slots(slots, store_id);
  KeySlots back;
  if (format::decode_key_slots(out, store_id, back) == nullptr && back == slots) return out;
  fail(Errc::invalid_argument, "these key slots cannot be stored");
}

// The former file stays until the new one is durable.
void write_slots(PackStore& store, const KeySlots& slots) {
  base::publish_file(store.fs(), store.tmp_directory(), store.path(), kKeysName,
                     readable_slots(slots, store.superblock().store_id), true);
}

auto find_slot(const std::string& place, KeySlots& slots, std::uint32_t number) {
  const auto at = std::ranges::find(slots.slots, number, &StoredKeySlot::number);
  if (at == slots.slots.end()) fail(Errc::not_found, "{}: there is no key slot {}", place, number);
  return at;
}

// Where slots are that are to change, and what a new one needs.
struct SlotsPlace {
  std::string name;  // for messages
  std::vector<std::byte> superblock;
  const Secret& data_key;
};
SlotsPlace place_of(PackStore& store) {
  return {store.path(), format::encode_superblock(store.superblock()), store.keys()->data_key()};
}

KeySlot append_slot(const SlotsPlace& place, KeySlots& slots, const KeySource& source,
                    const GivenSecret& secret, const std::string& label) {
  if (slots.next_number == UINT32_MAX) {
    fail(Errc::no_space, "{}: all numbers of key slots are used up", place.name);
  }
  StoredKeySlot slot;
  slot.number = slots.next_number++;
  slot.label = label;
  return described(
      slots.slots.emplace_back(new_slot(source, secret, place.superblock, place.data_key, slot)));
}

void require_label(const std::string& label) {
  if (label.size() <= format::kMaxKeyLabelBytes) return;
  fail(Errc::invalid_argument, "a label has at most {} bytes", format::kMaxKeyLabelBytes);
}

KeySlot add_to(const SlotsPlace& place, KeySlots& slots, const KeySource& source,
               const GivenSecret& secret, const std::string& label) {
  if (slots.slots.size() >= format::kMaxKeySlots) {
    fail(Errc::invalid_argument, "{}: at most {} key slots", place.name, format::kMaxKeySlots);
  }
  return append_slot(place, slots, source, secret, label);
}

void remove_from(const std::string& place, KeySlots& slots, std::uint32_t number) {
  const auto at = find_slot(place, slots, number);
  if (slots.slots.size() == 1) {
    fail(Errc::invalid_argument, "{}: key slot {} is the last: nothing would open the store", place,
         number);
  }
  slots.slots.erase(at);
}

KeySlot replace_in(const SlotsPlace& place, KeySlots& slots, std::uint32_t number,
                   const KeySource& source, const GivenSecret& secret) {
  const std::string label = find_slot(place.name, slots, number)->label;
  const KeySlot added = append_slot(place, slots, source, secret, label);
  slots.slots.erase(find_slot(place.name, slots, number));
  return added;
}

}  // namespace

std::vector<std::byte> first_key_slot(const KeySource& source,
                                      std::span<const std::byte> superblock,
                                      const format::Uuid& store_id, const Secret& data_key) {
  StoredKeySlot slot;
  slot.number = 1;
  KeySlots slots;
  slots.next_number = 2;
  slots.slots.push_back(new_slot(source, new_secret(source), superblock, data_key, slot));
  return readable_slots(slots, store_id);
}

LockedKey read_locked_key(base::Fs& fs, const std::string& path,
                          std::span<const std::byte> superblock, const format::Uuid& store_id) {
  LockedKey out{path + "/" + kKeysName, {}, {superblock.begin(), superblock.end()}, store_id};
  if (!fs.exists(out.file)) {
    fail(Errc::corrupted, "{}: missing: the store is encrypted, and its key was there", out.file);
  }
  out.slots = base::read_whole(fs, out.file, format::kMaxKeySlotsBytes);
  return out;
}

Secret unlock(const LockedKey& locked, const std::string& place) {
  return unlock(locked, place, key_source());
}

Secret unlock(const LockedKey& locked, const std::string& place, const KeySource& source) {
  const KeySlots slots = decoded_slots(locked);
  Unlocking unlocking{slots, locked.superblock, source.fingerprint, {}};
  if (open_one(source, place, unlocking)) return std::move(unlocking.key);
  if (unlocking.foreign) {
    fail(Errc::wrong_key, "{}: its key has another fingerprint than the wanted one (exchanged?)",
         place);
  }
  if (unlocking.problem)
    fail(unlocking.problem->code(), "{}: {}", place, unlocking.problem->what());
  if (unlocking.tried)
    fail(Errc::wrong_key, "{}: the key or passphrase fits none of its key slots", place);
  fail(Errc::wrong_key, "{}: the store is encrypted, and no key was given: set {}", place,
       kHowToGiveKeys);
}

bool is_wanted_fingerprint(const std::string& fingerprint) {
  return is_wanted(fingerprint, key_source().fingerprint);
}

void require_may_be_plain(const std::string& place, bool has_encrypted_remote) {
  const KeySource source = key_source();
  const bool may_be_of_remote = has_encrypted_remote && source.or_encrypted_remote;
  if ((!source.encrypted_only || may_be_of_remote) && source.fingerprint.empty()) return;
  fail(Errc::wrong_key, "{}: the store is not encrypted, and an encrypted one is wanted", place);
}

KeyFingerprint key_fingerprint_bytes(const Secret& data_key) {
  KeyFingerprint out;
  base::hkdf_sha256(data_key.bytes(), {}, "vellum fingerprint", out);
  return out;
}

std::string key_fingerprint(const Secret& data_key) {
  return base::hex(key_fingerprint_bytes(data_key));
}

std::string key_fingerprint(PackStore& store) {
  require_encrypted(store);
  return key_fingerprint(store.keys()->data_key());
}

namespace {

std::vector<KeySlot> described(const KeySlots& slots) {
  std::vector<KeySlot> out;
  for (const StoredKeySlot& slot : slots.slots) out.push_back(described(slot));
  return out;
}

}  // namespace

std::vector<KeySlot> key_slots(PackStore& store) { return described(read_slots(store)); }

std::vector<KeySlot> key_slots(const LockedKey& locked) { return described(decoded_slots(locked)); }

KeySlot add_key_slot(PackStore& store, const KeySource& source, const std::string& label) {
  require_encrypted(store);
  require_label(label);
  const GivenSecret secret = new_secret(source);
  const NameLock lock = lock_name(store, kKeysName);
  KeySlots slots = read_slots(store);
  const KeySlot added = add_to(place_of(store), slots, source, secret, label);
  write_slots(store, slots);
  return added;
}

void remove_key_slot(PackStore& store, std::uint32_t number) {
  const NameLock lock = lock_name(store, kKeysName);
  KeySlots slots = read_slots(store);
  remove_from(store.path(), slots, number);
  write_slots(store, slots);
}

KeySlot replace_key_slot(PackStore& store, std::uint32_t number, const KeySource& source) {
  KeySlots before = read_slots(store);
  find_slot(store.path(), before, number);  // before a person is asked
  const GivenSecret secret = new_secret(source);
  const NameLock lock = lock_name(store, kKeysName);
  KeySlots slots = read_slots(store);
  const KeySlot added = replace_in(place_of(store), slots, number, source, secret);
  write_slots(store, slots);
  return added;
}

ChangedSlots add_key_slot(const ReadSlots& read, const Secret& data_key, const KeySource& source,
                          const std::string& label) {
  require_label(label);
  const GivenSecret secret = new_secret(source);
  const LockedKey locked = read();
  KeySlots slots = decoded_slots(locked);
  const KeySlot added =
      add_to({locked.file, locked.superblock, data_key}, slots, source, secret, label);
  return {readable_slots(slots, locked.store_id), added};
}

std::vector<std::byte> remove_key_slot(const LockedKey& locked, std::uint32_t number) {
  KeySlots slots = decoded_slots(locked);
  remove_from(locked.file, slots, number);
  return readable_slots(slots, locked.store_id);
}

ChangedSlots replace_key_slot(const ReadSlots& read, const Secret& data_key, std::uint32_t number,
                              const KeySource& source) {
  LockedKey locked = read();
  KeySlots slots = decoded_slots(locked);
  find_slot(locked.file, slots, number);  // before a person is asked
  const GivenSecret secret = new_secret(source);
  locked = read();
  slots = decoded_slots(locked);
  const KeySlot added =
      replace_in({locked.file, locked.superblock, data_key}, slots, number, source, secret);
  return {readable_slots(slots, locked.store_id), added};
}

}  // namespace vellum::store
