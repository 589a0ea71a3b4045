// store/catalog/lock/lock_bytes.hpp: the bytes of `vellum.store` that serve as locks.
// The file ends long before them.
#pragma once

#include <cstdint>

namespace vellum::store {

// Shared: names are held. Exclusive: gc reads them.
inline constexpr std::uint64_t kNamesByte = std::uint64_t{1} << 40;
// Exclusive: a caller waits until nobody holds names, so others that want to hold them wait.
inline constexpr std::uint64_t kTurnByte = kNamesByte + 1;
// Exclusive: a name is being made or removed.
inline constexpr std::uint64_t kFirstNameByte = std::uint64_t{1} << 41;
inline constexpr std::uint64_t kNameBytes = std::uint64_t{1} << 61;

}  // namespace vellum::store
