// base/bytes/sha256.cpp: see sha256.hpp.
#include "base/bytes/sha256.hpp"

// The functions of the algorithm itself, which OpenSSL 3 calls deprecated. They neither allocate nor
// need OpenSSL's initialization. So they also work in an exit handler that runs after OpenSSL's own
// (OPENSSL_cleanup(3)), as that of `vellum run` does in a program that uses OpenSSL.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace vellum::base {

Sha256 sha256(std::span<const std::byte> bytes) {
  Sha256 digest;
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, bytes.data(), bytes.size());
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return digest;
}

}  // namespace vellum::base
