// base/bytes/checksum.hpp: XXH3 checksums (xxHash library). They detect damage, not forgery
// (docs/security.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vellum::base {

std::uint64_t checksum64(std::span<const std::byte> bytes, std::uint64_t seed = 0) noexcept;

// checksum64 of `head` followed by `body`, without joining them in memory.
std::uint64_t checksum64(std::span<const std::byte> head, std::span<const std::byte> body,
                         std::uint64_t seed) noexcept;

}  // namespace vellum::base
