// base/keep_loaded.hpp: keeps the library's code loaded.
#pragma once

namespace vellum::base {

// Keeps the shared object with this copy of the library loaded, even after dlclose(3): signal
// handlers and threads use it, and not all of them can be removed. Has no effect in a program that
// is statically linked with the library.
void keep_loaded() noexcept;

}  // namespace vellum::base
