// base/crypto/bech32.hpp: Bech32 (BIP 173), in which age writes recipients and identities.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/crypto/secret.hpp"

namespace vellum::base {

// "<prefix>1<data and checksum>", in lower case.
std::string bech32_encode(std::string_view prefix, std::span<const std::byte> bytes);
// The bytes of a text with this prefix, in one case; empty: it is none, or its checksum is wrong.
Secret bech32_decode(std::string_view prefix, std::string_view text);

}  // namespace vellum::base
