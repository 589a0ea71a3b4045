// store/lock/lock_bytes.hpp: which bytes of `vellum.store` are locked for what. None of them is
// there: the file ends long before.
#pragma once

#include <cstdint>

namespace vellum::store {

// Shared: names are held. Alone: gc looks at them.
inline constexpr std::uint64_t kNamesByte = std::uint64_t{1} << 40;
// Alone: somebody waits for the names to be held by nobody, so whoever wants to hold them waits.
inline constexpr std::uint64_t kTurnByte = kNamesByte + 1;
// Alone: a name is being made or removed.
inline constexpr std::uint64_t kFirstNameByte = std::uint64_t{1} << 41;
inline constexpr std::uint64_t kNameBytes = std::uint64_t{1} << 61;

}  // namespace vellum::store
