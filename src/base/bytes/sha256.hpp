// base/bytes/sha256.hpp: SHA-256 (by OpenSSL), the name of a content-addressed block.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace vellum::base {

using Sha256 = std::array<std::byte, 32>;

Sha256 sha256(std::span<const std::byte> bytes);

}  // namespace vellum::base
