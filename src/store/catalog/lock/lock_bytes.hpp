// store/catalog/lock/lock_bytes.hpp: the bytes of `vellum.store` that serve as locks,
// far behind the end of the file.
#pragma once

#include <cstdint>

namespace vellum::store {

// Shared: NamesShared. Exclusive: NamesExclusive.
inline constexpr std::uint64_t kNamesByte = std::uint64_t{1} << 40;
// Exclusive: a NamesExclusive waits for kNamesByte; new NamesShared wait for it.
inline constexpr std::uint64_t kTurnByte = kNamesByte + 1;
// Exclusive: a name is being created or removed.
inline constexpr std::uint64_t kFirstNameByte = std::uint64_t{1} << 41;
inline constexpr std::uint64_t kNameBytes = std::uint64_t{1} << 61;

}  // namespace vellum::store
