// base/environment.hpp: what the environment sets.
#pragma once

#include <cstdlib>
#include <optional>
#include <string_view>

namespace vellum::base {

// The value of a variable. Nothing: it is not set, or set to nothing.
inline std::optional<std::string_view> environment(const char* variable) noexcept {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace vellum::base
