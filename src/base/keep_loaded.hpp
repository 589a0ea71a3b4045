// base/keep_loaded.hpp: code that must not go away.
#pragma once

namespace vellum::base {

// The shared object that holds this copy of the library stays loaded from now on, also after
// dlclose(3): signal handlers and threads lead into it, and nobody can take all of those back.
// Nothing happens in a program that has it linked in, which stays anyway.
void keep_loaded() noexcept;

}  // namespace vellum::base
