// base/crypto/hkdf.cpp: see hkdf.hpp.
#include "base/crypto/hkdf.hpp"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <memory>

#include "base/fail.hpp"

namespace vellum::base {
namespace {

OSSL_PARAM octets(const char* name, const void* bytes, std::size_t size) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<void*>(bytes), size);
}

}  // namespace

void hkdf_sha256(std::span<const std::byte> secret, std::span<const std::byte> salt,
                 std::string_view info, std::span<std::byte> out) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr), &EVP_KDF_free);
  if (kdf == nullptr) fail(Errc::unsupported, "OpenSSL offers no HKDF");
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      EVP_KDF_CTX_new(kdf.get()), &EVP_KDF_CTX_free);
  char digest[] = "SHA256";
  // OpenSSL 3.0 refuses an empty salt, and takes zeros if there is none, as the standard does.
  const std::array parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      octets(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      octets(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      salt.empty() ? OSSL_PARAM_construct_end()
                   : octets(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
      OSSL_PARAM_construct_end(),
  };
  if (context == nullptr ||
      EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), out.size(),
                     parameters.data()) != 1) {
    fail(Errc::out_of_memory, "HKDF failed");
  }
}

}  // namespace vellum::base
