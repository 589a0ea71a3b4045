// base/shortage.hpp: errors of system calls that may succeed later.
#pragma once

#include <cerrno>

namespace vellum::base {

// Whether a call has failed for lack of descriptors or memory.
constexpr bool is_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

}  // namespace vellum::base
