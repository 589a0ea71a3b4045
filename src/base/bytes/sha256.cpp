// base/bytes/sha256.cpp: see sha256.hpp.
#include "base/bytes/sha256.hpp"

#include <openssl/evp.h>

#include <memory>
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

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

// A new context costs as much as hashing 100 bytes. Hence each thread keeps its own.
EVP_MD_CTX* context_of_thread() {
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  return context.get();
}

}  // namespace

Sha256 sha256(std::span<const std::byte> bytes) {
  Sha256 digest;
  auto* out = reinterpret_cast<unsigned char*>(digest.data());
  EVP_MD_CTX* const context = context_of_thread();
  if (context == nullptr || EVP_DigestInit_ex2(context, sha256_algorithm(), nullptr) != 1 ||
      EVP_DigestUpdate(context, bytes.data(), bytes.size()) != 1 ||
      EVP_DigestFinal_ex(context, out, nullptr) != 1) {
    fail(Errc::out_of_memory, "SHA-256 failed");
  }
  return digest;
}

}  // namespace vellum::base
