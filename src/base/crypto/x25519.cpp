// base/crypto/x25519.cpp: see x25519.hpp.
#include "base/crypto/x25519.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <cassert>
#include <memory>

#include "base/fail.hpp"

namespace vellum::base {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Key private_key(const Secret& key) {
  assert(key.size() == kKeyBytes);
  Key out(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr,
                                       reinterpret_cast<const unsigned char*>(key.bytes().data()),
                                       kKeyBytes),
          &EVP_PKEY_free);
  if (out == nullptr) fail(Errc::unsupported, "OpenSSL offers no X25519");
  return out;
}

}  // namespace

Secret new_x25519_key() { return Secret::random(kKeyBytes); }

X25519Public x25519_public(const Secret& key) {
  X25519Public out;
  std::size_t size = out.size();
  if (EVP_PKEY_get_raw_public_key(private_key(key).get(),
                                  reinterpret_cast<unsigned char*>(out.data()), &size) != 1) {
    fail(Errc::out_of_memory, "X25519 failed");
  }
  return out;
}

Secret x25519_shared(const Secret& key, const X25519Public& peer) {
  const Key own = private_key(key);
  const Key other(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr,
                                  reinterpret_cast<const unsigned char*>(peer.data()), peer.size()),
      &EVP_PKEY_free);
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new(own.get(), nullptr), &EVP_PKEY_CTX_free);
  Secret out(kKeyBytes);
  std::size_t size = out.size();
  const bool good =
      context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
      EVP_PKEY_derive_set_peer(context.get(), other.get()) == 1 &&
      EVP_PKEY_derive(context.get(), reinterpret_cast<unsigned char*>(out.bytes().data()), &size) ==
          1;
  ERR_clear_error();
  if (!good) fail(Errc::invalid_argument, "no usable public key of X25519");
  return out;
}

}  // namespace vellum::base
