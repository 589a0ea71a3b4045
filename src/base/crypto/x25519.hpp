// base/crypto/x25519.hpp: key agreement (RFC 7748): a recipient's public key suffices to wrap a key.
#pragma once

#include <array>
#include <cstddef>

#include "base/crypto/secret.hpp"

namespace vellum::base {

using X25519Public = std::array<std::byte, kKeyBytes>;

Secret new_x25519_key();
X25519Public x25519_public(const Secret& key);
// Throws Errc::invalid_argument for a public key of small order.
Secret x25519_shared(const Secret& key, const X25519Public& peer);

}  // namespace vellum::base
