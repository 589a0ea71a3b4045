// base/crypto/ed25519.hpp: Ed25519 (RFC 8032), and the files that hold its keys.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/crypto/secret.hpp"

namespace vellum::base {

using Ed25519Public = std::array<std::byte, 32>;
using Ed25519Signature = std::array<std::byte, 64>;

// The 32 bytes of a private key, its seed, from a file: PEM (PKCS #8, as `openssl genpkey -algorithm
// ed25519` writes it), or OpenSSH's format without a passphrase. Throws the errors of reading, and
// Errc::invalid_argument, which names the file and no byte of it.
Secret read_ed25519_private(const std::string& path);
// A public key, from a file: PEM, or a line of OpenSSH. Errors as above.
Ed25519Public read_ed25519_public(const std::string& path);

// REQUIRES: `key` has 32 bytes.
Ed25519Public ed25519_public(const Secret& key);
Ed25519Signature ed25519_sign(const Secret& key, std::span<const std::byte> message);
bool ed25519_verify(const Ed25519Public& key, std::span<const std::byte> message,
                    const Ed25519Signature& signature);

}  // namespace vellum::base
