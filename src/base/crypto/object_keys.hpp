// base/crypto/object_keys.hpp: the keys of a remote whose objects are encrypted as wholes.
//
// HKDF derives a key for each object from the remote's data key and the object's salt, which is
// random. AES-256-GCM seals the object's chunks under that key; the number of a chunk is its nonce.
// An object is sealed once under its key, so no nonce is used for two messages. AES-256-SIV (RFC
// 5297) seals names, which have to be the same each time. docs/remote-format.md has the argument.
//
// Threads: all calls from any thread; an ObjectCipher is for one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/crypto/secret.hpp"
#include "base/crypto/store_keys.hpp"

namespace vellum::base {

inline constexpr std::size_t kObjectSaltBytes = 32, kObjectNameBytes = 32;
using ObjectSalt = std::array<std::byte, kObjectSaltBytes>;
using ObjectNameHash = std::array<std::byte, kObjectNameBytes>;
// The authenticator of SIV, then the encrypted hash.
using SealedName = std::array<std::byte, kAuthenticatorBytes + kObjectNameBytes>;

class ObjectKeys {
 public:
  // REQUIRES: the data key has kKeyBytes. Throws Errc::unsupported if OpenSSL has no AES-256-SIV.
  explicit ObjectKeys(const Secret& data_key);

  const Secret& data_key() const noexcept { return data_key_; }
  // The same for the same hash and `clear`, which is authenticated with it.
  SealedName seal_name(std::span<const std::byte> clear, const ObjectNameHash& name) const;
  // Nullopt: it was not sealed with this key and `clear`.
  std::optional<ObjectNameHash> open_name(std::span<const std::byte> clear,
                                          const SealedName& sealed) const;

 private:
  friend class ObjectCipher;
  Secret data_key_, object_key_, name_key_;
};

// Seals or opens the chunks of one object.
class ObjectCipher {
 public:
  enum class Direction : int { open = 0, seal = 1 };
  // A writer fills the salt from the kernel's generator, and seals each chunk once.
  ObjectCipher(const ObjectKeys& keys, const ObjectSalt& salt, Direction direction);
  ~ObjectCipher();
  ObjectCipher(const ObjectCipher&) = delete;
  ObjectCipher& operator=(const ObjectCipher&) = delete;

  // `out` has as many bytes as `text`, and does not overlap it. `clear` is authenticated, too.
  void seal(std::uint64_t chunk, std::span<const std::byte> clear, std::span<const std::byte> text,
            std::span<std::byte> out, std::span<std::byte, kAuthenticatorBytes> authenticator);
  // False: it is not that chunk of this object; `out` is then zero.
  [[nodiscard]] bool open(std::uint64_t chunk, std::span<const std::byte> clear,
                          std::span<const std::byte> text, std::span<std::byte> out,
                          std::span<const std::byte, kAuthenticatorBytes> authenticator);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vellum::base
