// base/shortage.hpp: errors of calls that may go well later.
#pragma once

#include <cerrno>

namespace vellum::base {

// Whether a call has failed for want of descriptors or memory.
constexpr bool is_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

}  // namespace vellum::base
