// memory/engine/engine.hpp: the choice of a region's engine.
#pragma once

#include <memory>
#include <vellum/region.hpp>

#include "memory/memory.hpp"

namespace vellum::region {

// Resolves `wanted` for this machine; mapped counts as automatic where the region is not writable.
// Prints one line on standard error when automatic falls back, to another engine or to synchronous
// write protection. Throws Errc::unsupported,
// invalid_argument (VELLUM_ENGINE).
Engine choose_engine(Engine wanted, bool writable);

// `source` has the committed content; null: all zero. Throws what choose_engine() throws, and
// Errc::busy (address taken), out_of_memory, io. Without address space for the capacity, tries a
// quarter, and so on, down to least_capacity_bytes.
std::unique_ptr<RegionMemory> make_region_memory(Engine engine, const MemoryOptions& options,
                                                 const std::shared_ptr<store::PageSource>& source);

}  // namespace vellum::region
