// base/try_to.hpp: work that may be left undone, such as keeping a hint.
#pragma once

#include <vellum/error.hpp>

namespace vellum::base {

// Runs `body`. An Error ends it quietly, unless it reports lack of memory, which is thrown on.
// False: it has failed.
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
