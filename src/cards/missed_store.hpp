// cards/missed_store.hpp: the error for a store that was not marked.
#pragma once

#include <cstddef>
#include <string>

#include "cards/tracked_range.hpp"

namespace vellum::cards {

// Throws Errc::corrupted: `what` names the file or region at `data`, `missed` has the first line.
[[noreturn]] void throw_missed_store(const std::string& what, const std::byte* data,
                                     MarkedPage missed);

}  // namespace vellum::cards
