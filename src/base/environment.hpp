// base/environment.hpp: environment variables.
#pragma once

#include <cstdlib>
#include <optional>
#include <string_view>

namespace vellum::base {

// The value of a variable; nullopt: it is not set, or empty.
inline std::optional<std::string_view> environment(const char* variable) noexcept {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace vellum::base
