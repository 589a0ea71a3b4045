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

// Authenticates `clear`, and encrypts or decrypts `text` to `out`, which may be `text` itself.
inline bool update_cipher(EVP_CIPHER_CTX* context, std::span<const std::byte> clear,
                          std::span<const std::byte> text, std::span<std::byte> out) noexcept {
  assert(text.size() == out.size());
  int done = 0;
  if (!clear.empty() &&
      EVP_CipherUpdate(context, nullptr, &done, raw(clear), cipher_length(clear)) != 1) {
    return false;
  }
  return text.empty() ||
         EVP_CipherUpdate(context, raw(out), &done, raw(text), cipher_length(text)) == 1;
}

inline bool finish_cipher(EVP_CIPHER_CTX* context) noexcept {
  unsigned char none[kCipherBlockBytes];
  int done = 0;
  return EVP_CipherFinal_ex(context, none, &done) == 1;
}

// Freeing a context wipes its key schedule.
struct FreeCipherContext {
  void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};
using UniqueCipherContext = std::unique_ptr<EVP_CIPHER_CTX, FreeCipherContext>;

}  // namespace vellum::base
