// base/try_to.hpp: optional work, such as writing a hint.
#pragma once

#include <vellum/error.hpp>

namespace vellum::base {

// Runs `body`. Ignores an Error, except lack of memory, which is rethrown. False: `body` has
// failed.
template <typename Body>
bool try_to(const Body& body) {
  try {
    body();
    return true;
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return false;
  }
}

}  // namespace vellum::base
