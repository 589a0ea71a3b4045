// base/crypto/evp.hpp: OpenSSL's ciphers for bytes, shared by the keys of this folder.
#pragma once

#include <openssl/evp.h>

#include <cassert>
#include <climits>
#include <cstddef>
#include <memory>
#include <span>

#include "base/fail.hpp"

namespace vellum::base {

inline constexpr std::size_t kCipherBlockBytes = 16;

// Fetching takes locks and allocates: do it once.
inline const EVP_CIPHER* fetch_cipher(const char* name) {
  const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, name, nullptr);
  if (cipher == nullptr) fail(Errc::unsupported, "OpenSSL offers no {}", name);
  return cipher;
}
inline const EVP_CIPHER* gcm_cipher() {
  static const EVP_CIPHER* const cipher = fetch_cipher("AES-256-GCM");
  return cipher;
}

inline const unsigned char* raw(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
inline unsigned char* raw(std::span<std::byte> bytes) noexcept {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
inline int cipher_length(std::span<const std::byte> bytes) noexcept {
  assert(bytes.size() <= INT_MAX);
  return static_cast<int>(bytes.size());
}

// Freeing a context wipes its key schedule.
struct FreeCipherContext {
  void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};
using UniqueCipherContext = std::unique_ptr<EVP_CIPHER_CTX, FreeCipherContext>;

}  // namespace vellum::base
