// base/bytes/sha256.cpp: see sha256.hpp.
#include "base/bytes/sha256.hpp"

#include <openssl/evp.h>

#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::base {
namespace {

// Fetching an algorithm costs more than hashing a page. Hence it is fetched once and kept.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  if (algorithm == nullptr) fail(Errc::unsupported, "OpenSSL offers no SHA-256");
  return algorithm;
}

}  // namespace

Sha256 sha256(std::span<const std::byte> bytes) {
  Sha256 digest;
  auto* out = reinterpret_cast<unsigned char*>(digest.data());
  if (EVP_Digest(bytes.data(), bytes.size(), out, nullptr, sha256_algorithm(), nullptr) != 1) {
    fail(Errc::out_of_memory, "SHA-256 failed");
  }
  return digest;
}

}  // namespace vellum::base
