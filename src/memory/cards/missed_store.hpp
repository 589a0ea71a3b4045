// memory/cards/missed_store.hpp: the search for stores that were not marked.
#pragma once

#include <cstddef>
#include <string>

#include "memory/cards/tracked_range.hpp"

namespace vellum::cards {

// VELLUM_VERIFY_CARDS: every commit compares all changed lines with the marks.
bool verify_by_environment();

// Throws Errc::corrupted: `what` names the file or region at `data`, `missed` has the first line.
[[noreturn]] void throw_missed_store(const std::string& what, const std::byte* data,
                                     MarkedPage missed);

}  // namespace vellum::cards
