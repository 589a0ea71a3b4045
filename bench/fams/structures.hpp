// bench/fams/structures.hpp: the structures in an arena, compiled in several ways from one source.
#pragma once

#include "store.hpp"

namespace fams {

// The structure in the range at `base`, created there if the range has none. Bytes of a fresh range
// are zeros.
using MakeStructure = std::unique_ptr<Structure> (*)(void* base, std::uint64_t size_bytes,
                                                     const Size& size);

// Stores are not reported.
std::unique_ptr<Structure> plain_structure(void*, std::uint64_t, const Size&);
// Calls vellum_mark().
std::unique_ptr<Structure> marked_structure(void*, std::uint64_t, const Size&);
// Records the touched pages (store_reports.hpp).
std::unique_ptr<Structure> noted_structure(void*, std::uint64_t, const Size&);
// Compiled by vellum-clang++, where available.
std::unique_ptr<Structure> instrumented_structure(void*, std::uint64_t, const Size&);

}  // namespace fams
