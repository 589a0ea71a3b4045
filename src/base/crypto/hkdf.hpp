// base/crypto/hkdf.hpp: HKDF with SHA-256 (RFC 5869): keys from a key.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace vellum::base {

// Fills `out` from the secret. Different texts `info` give independent keys. `salt` may be empty.
void hkdf_sha256(std::span<const std::byte> secret, std::span<const std::byte> salt,
                 std::string_view info, std::span<std::byte> out);

}  // namespace vellum::base
