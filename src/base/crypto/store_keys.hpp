// base/crypto/store_keys.hpp: the keys of an open encrypted store, and all sealing with them.
//
// HKDF derives a key for each kind of content from the store's data key. AES-256 as a
// pseudo-random function derives a message key from it: for a pack, a journal's epoch, a kind of
// file. AES-256-GCM seals a message under that key, with a nonce that is random, or a keyed hash of
// the message. docs/format.md has the argument that no nonce is used for two messages.
//
// open() may run in the fault handler: it allocates nothing. Key schedules exist only during a
// call; between calls the heap holds none.
//
// Threads: all calls from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/crypto/secret.hpp"

namespace vellum::base {

inline constexpr std::size_t kNonceBytes = 12;
inline constexpr std::size_t kAuthenticatorBytes = 16;
// What sealing adds to a message: the nonce, then the authenticator.
inline constexpr std::size_t kSealBytes = kNonceBytes + kAuthenticatorBytes;

// The number selects the key, and is fixed by the format.
enum class KeyUse : std::uint8_t { pack = 0, journal = 1, file = 2 };

// Selects a message key: of a pack (its id), of a journal (branch id, epoch), of a kind of file.
struct MessageKey {
  KeyUse use;
  std::uint64_t a = 0;
  std::uint64_t b = 0;  // the low 56 bits count
};

class StoreKeys {
 public:
  // REQUIRES: the data key has kKeyBytes.
  explicit StoreKeys(const Secret& data_key);
  ~StoreKeys();
  StoreKeys(const StoreKeys&) = delete;
  StoreKeys& operator=(const StoreKeys&) = delete;

  const Secret& data_key() const noexcept { return data_key_; }

  // Encrypts `text` in place and fills `seal`. `clear` is authenticated, too. REQUIRES: `seal` has
  // kSealBytes. Throws Errc::io or out_of_memory.
  void seal(const MessageKey& key, std::span<const std::byte> clear, std::span<std::byte> text,
            std::span<std::byte> seal) const;
  // The same, with a nonce that a secret derives from the message: the same message has the same
  // bytes. For content that is named by a hash of its bytes.
  void seal_alike(const MessageKey& key, std::span<const std::byte> clear,
                  std::span<std::byte> text, std::span<std::byte> seal) const;
  // Decrypts `text` in place. False: it was not sealed with this key and `clear`; `text` is then
  // zero.
  [[nodiscard]] bool open(const MessageKey& key, std::span<const std::byte> clear,
                          std::span<std::byte> text,
                          std::span<const std::byte> seal) const noexcept;

 private:
  static constexpr std::size_t kUses = 3, kContexts = 16;
  void encrypt_with_nonce(const MessageKey& key, std::span<const std::byte> clear,
                          std::span<std::byte> text, std::span<std::byte> seal) const;
  struct CipherContext;
  CipherContext& lock_context() const noexcept;
  std::span<const std::byte> kind_key(KeyUse use) const noexcept;

  Secret data_key_;
  Secret kind_keys_;
  Secret nonce_key_;  // for seal_alike()
  // Of each context: the message key while it is in use.
  mutable Secret message_keys_;
  std::unique_ptr<std::array<CipherContext, kContexts>> contexts_;
};

// AES-256-GCM with a key of its own: a key slot. REQUIRES: as in StoreKeys; the key has kKeyBytes.
void seal_with(std::span<const std::byte> key, std::span<const std::byte> clear,
               std::span<std::byte> text, std::span<std::byte> seal);
[[nodiscard]] bool open_with(std::span<const std::byte> key, std::span<const std::byte> clear,
                             std::span<std::byte> text, std::span<const std::byte> seal);

}  // namespace vellum::base
