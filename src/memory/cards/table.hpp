// memory/cards/table.hpp: the reservation of the card table (memory/cards/layout.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/cards/layout.h"

namespace vellum::cards {

inline constexpr std::size_t kCardBytes = 1U << VELLUM_CARD_SHIFT;
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::uint64_t kWindowBegin = VELLUM_WINDOW_BEGIN;
inline constexpr std::uint64_t kWindowEnd = VELLUM_WINDOW_END;
inline constexpr unsigned kGranuleShift = VELLUM_GRANULE_SHIFT;

inline bool in_window(std::uint64_t address) noexcept {
  return address >> VELLUM_WINDOW_SHIFT == VELLUM_WINDOW_INDEX;
}

// Reserves the table once per process. Throws Errc::unsupported with the reason where its fixed
// addresses are not available: other code's memory is there (ThreadSanitizer's, for example), or
// address space is limited.
void reserve_table();

}  // namespace vellum::cards
