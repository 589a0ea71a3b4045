// base/crypto/argon2.hpp: Argon2id (RFC 9106): a key from a passphrase.
//
// By OpenSSL from 3.2 on, otherwise by the machine's libargon2 or libsodium, which is loaded when a
// passphrase is first used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/crypto/secret.hpp"

namespace vellum::base {

struct Argon2Cost {
  std::uint32_t passes = 3;
  std::uint32_t memory_kib = 64u << 10;
  bool operator==(const Argon2Cost&) const = default;
};
inline constexpr std::size_t kArgon2SaltBytes = 16;
// A hostile slot can cost a reader this much at most.
inline constexpr std::uint32_t kMaxArgon2Passes = 16, kMaxArgon2MemoryKib = 1u << 20;

constexpr bool cost_ok(const Argon2Cost& cost) noexcept {
  return cost.passes >= 1 && cost.passes <= kMaxArgon2Passes && cost.memory_kib >= 8 &&
         cost.memory_kib <= kMaxArgon2MemoryKib;
}

// A key of kKeyBytes, with one lane. REQUIRES: cost_ok(); the salt has kArgon2SaltBytes. Throws
// Errc::unsupported if no library has Argon2id.
Secret argon2id(const Secret& passphrase, std::span<const std::byte> salt, const Argon2Cost& cost);

}  // namespace vellum::base
