// run/process/elf_symbols.hpp: symbols that a loaded library exports, found without dlsym(3), which
// this library takes over.
#pragma once

namespace vellum::preload {

// The address of a function that this library exports; null: it has none of that name. Allocates
// nothing and takes no lock.
void* own_export(const char* name) noexcept;

// The C library's function, past all libraries that take it over; null: not found. Only for functions
// without versions that differ. Allocates nothing.
void* c_library_export(const char* name) noexcept;

// Whether an address lies in the C library, in this or in another namespace (dlmopen(3)).
bool is_of_c_library(const void* address) noexcept;

}  // namespace vellum::preload
