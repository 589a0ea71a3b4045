// format/key_slots.hpp: vellum.keys: the data key of an encrypted store, wrapped by each secret that
// opens it.
//
// The file is clear. Each slot's wrapped key is authenticated together with the slot and with the
// superblock, so neither can be changed, nor moved to another store.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/crypto/argon2.hpp"
#include "base/crypto/secret.hpp"
#include "base/crypto/store_keys.hpp"
#include "base/crypto/x25519.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMaxKeySlots = 16;
inline constexpr std::uint32_t kMaxKeyLabelBytes = 200;
inline constexpr std::uint32_t kMaxKeySlotsBytes = 8u << 10;

// The numbers are stored on disk: never reuse one.
enum class KeySlotKind : std::uint8_t { passphrase = 1, key_file = 2, recipient = 3, command = 4 };

using KeySalt = std::array<std::byte, base::kArgon2SaltBytes>;
using WrappedKey = std::array<std::byte, base::kKeyBytes + base::kSealBytes>;

struct StoredKeySlot {
  std::uint32_t number = 0;
  KeySlotKind kind = KeySlotKind::passphrase;
  std::string label;
  base::Argon2Cost cost;  // of passphrases and commands
  KeySalt salt{};         // of all kinds but recipient
  base::X25519Public recipient{}, ephemeral{};
  WrappedKey wrapped{};
  bool operator==(const StoredKeySlot&) const = default;
};

struct KeySlots {
  std::uint32_t next_number = 1;
  std::vector<StoredKeySlot> slots;  // by number
  bool operator==(const KeySlots&) const = default;
};

// What the wrapped key is authenticated with: the superblock, and the slot without it.
std::vector<std::byte> key_slot_context(const StoredKeySlot& slot,
                                        std::span<const std::byte> superblock);

std::vector<std::byte> encode_key_slots(const KeySlots& slots, const Uuid& store_id);
// nullptr, or a description of the error.
const char* decode_key_slots(std::span<const std::byte> bytes, const Uuid& store_id, KeySlots& out);

}  // namespace vellum::format
