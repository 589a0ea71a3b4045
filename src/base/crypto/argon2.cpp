// base/crypto/argon2.cpp: see argon2.hpp.
#include "base/crypto/argon2.hpp"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <cassert>
#include <memory>

#include "base/fail.hpp"

namespace vellum::base {
namespace {

using Input = std::span<const std::byte>;

// The names of the parameters are OpenSSL 3.2's, and its headers may be older than the library.
bool by_openssl(const Secret& passphrase, Input salt, Argon2Cost cost, std::span<std::byte> out) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, "ARGON2ID", nullptr), &EVP_KDF_free);
  ERR_clear_error();
  if (kdf == nullptr) return false;
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      EVP_KDF_CTX_new(kdf.get()), &EVP_KDF_CTX_free);
  std::uint32_t lanes = 1;
  const auto octets = [](const char* name, Input bytes) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<std::byte*>(bytes.data()),
                                             bytes.size());
  };
  const std::array parameters{
      octets("pass", passphrase.bytes()),
      octets("salt", salt),
      OSSL_PARAM_construct_uint32("iter", &cost.passes),
      OSSL_PARAM_construct_uint32("memcost", &cost.memory_kib),
      OSSL_PARAM_construct_uint32("lanes", &lanes),
      OSSL_PARAM_construct_end(),
  };
  return context != nullptr &&
         EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), out.size(),
                        parameters.data()) == 1;
}

template <typename Function>
Function* loaded(const char* library, const char* name) {
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return handle == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle, name));
}

// argon2.h: argon2id_hash_raw().
using HashRaw = int(std::uint32_t passes, std::uint32_t memory_kib, std::uint32_t lanes,
                    const void* passphrase, std::size_t passphrase_bytes, const void* salt,
                    std::size_t salt_bytes, void* out, std::size_t out_bytes);

bool by_libargon2(const Secret& passphrase, Input salt, Argon2Cost cost, std::span<std::byte> out) {
  static HashRaw* const hash = loaded<HashRaw>("libargon2.so.1", "argon2id_hash_raw");
  return hash != nullptr &&
         hash(cost.passes, cost.memory_kib, 1, passphrase.bytes().data(), passphrase.size(),
              salt.data(), salt.size(), out.data(), out.size()) == 0;
}

// sodium/crypto_pwhash.h: crypto_pwhash(); the last argument is crypto_pwhash_ALG_ARGON2ID13.
using PwHash = int(unsigned char* out, unsigned long long out_bytes, const char* passphrase,
                   unsigned long long passphrase_bytes, const unsigned char* salt,
                   unsigned long long passes, std::size_t memory_bytes, int algorithm);

bool by_libsodium(const Secret& passphrase, Input salt, Argon2Cost cost, std::span<std::byte> out) {
  static PwHash* const hash = loaded<PwHash>("libsodium.so.23", "crypto_pwhash");
  constexpr int kArgon2id13 = 2;
  return hash != nullptr &&
         hash(reinterpret_cast<unsigned char*>(out.data()), out.size(),
              reinterpret_cast<const char*>(passphrase.bytes().data()), passphrase.size(),
              reinterpret_cast<const unsigned char*>(salt.data()), cost.passes,
              std::size_t{cost.memory_kib} << 10, kArgon2id13) == 0;
}

}  // namespace

Secret argon2id(const Secret& passphrase, std::span<const std::byte> salt, const Argon2Cost& cost) {
  assert(cost_ok(cost) && salt.size() == kArgon2SaltBytes);
  Secret out(kKeyBytes);
  if (by_openssl(passphrase, salt, cost, out.bytes()) ||
      by_libargon2(passphrase, salt, cost, out.bytes()) ||
      by_libsodium(passphrase, salt, cost, out.bytes())) {
    return out;
  }
  fail(Errc::unsupported,
       "passphrases need Argon2id with {} MiB of memory: OpenSSL 3.2, libargon2 or libsodium",
       cost.memory_kib >> 10);
}

}  // namespace vellum::base
