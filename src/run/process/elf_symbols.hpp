// run/process/elf_symbols.hpp: symbols that a loaded library exports, found without dlsym(3), which
// this library intercepts.
#pragma once

namespace vellum::preload {

// The address of a function that this library exports; null: it has none of that name. Allocates
// nothing and takes no lock.
void* own_export(const char* name) noexcept;

// The C library's function, skipping all libraries that intercept it; null: not found. Only for
// functions without differing symbol versions. Allocates nothing.
void* c_library_export(const char* name) noexcept;

// Whether an address is in the C library, in this or in another namespace (dlmopen(3)).
bool is_of_c_library(const void* address) noexcept;

}  // namespace vellum::preload
