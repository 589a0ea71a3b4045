// base/crypto/ed25519.cpp: see ed25519.hpp. ed25519_files.cpp reads keys.
#include "base/crypto/ed25519.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <cassert>
#include <memory>

#include "base/crypto/evp.hpp"
#include "base/fail.hpp"

namespace vellum::base {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

// OpenSSL wipes its copy of the key when it frees it.
Key private_key(const Secret& key) {
  assert(key.size() == kKeyBytes);
  Key out(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, raw(key.bytes()), kKeyBytes),
          &EVP_PKEY_free);
  if (out == nullptr) fail(Errc::unsupported, "OpenSSL offers no Ed25519");
  return out;
}

}  // namespace

Ed25519Public ed25519_public(const Secret& key) {
  Ed25519Public out;
  std::size_t size = out.size();
  if (EVP_PKEY_get_raw_public_key(private_key(key).get(), raw(std::span<std::byte>(out)), &size) !=
      1) {
    fail(Errc::out_of_memory, "Ed25519 failed");
  }
  return out;
}

Ed25519Signature ed25519_sign(const Secret& key, std::span<const std::byte> message) {
  if (OPENSSL_init_crypto(0, nullptr) != 1) {
    fail(Errc::unsupported, "the program has ended OpenSSL: sign before exit(3)");
  }
  const Key own = private_key(key);
  const Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  Ed25519Signature out;
  std::size_t size = out.size();
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, own.get()) != 1 ||
      EVP_DigestSign(context.get(), raw(std::span<std::byte>(out)), &size, raw(message),
                     message.size()) != 1) {
    fail(Errc::out_of_memory, "Ed25519 failed");
  }
  return out;
}

bool ed25519_verify(const Ed25519Public& key, std::span<const std::byte> message,
                    const Ed25519Signature& signature) {
  const Key peer(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw(std::span(key)), key.size()),
      &EVP_PKEY_free);
  const Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (context == nullptr) fail(Errc::out_of_memory, "Ed25519 failed");
  const bool good =
      peer != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, peer.get()) == 1 &&
      EVP_DigestVerify(context.get(), raw(std::span(signature)), signature.size(), raw(message),
                       message.size()) == 1;
  ERR_clear_error();
  return good;
}

}  // namespace vellum::base
