// base/keep_loaded.hpp: code that must stay loaded.
#pragma once

namespace vellum::base {

// Keeps the shared object that holds this copy of the library loaded from now on, even after
// dlclose(3): signal handlers and threads lead into it, and not all of them can be taken back. Does
// nothing in a program that has the library linked in, which stays anyway.
void keep_loaded() noexcept;

}  // namespace vellum::base
