// base/fail.hpp: helpers to throw an Error and to add context to it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "vellum/error.hpp"

namespace vellum {

template <typename... Args>
[[noreturn]] void fail(Errc code, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(code, fmt::format(text, std::forward<Args>(args)...));
}

// Runs `body`. Rethrows its Error as "<where>: <what>".
template <typename Body>
auto with_context(const std::string& where, Body&& body) {
  try {
    return body();
  } catch (const Error& e) {
    throw Error(e.code(), where + ": " + e.what());
  }
}

// The text of an error for a report of damage. Rethrows errors that are no damage: lack of memory
// or descriptors, and data of a newer Vellum. REQUIRES: `e` is being handled.
inline std::string damage_reason(const Error& e) {
  if (e.code() == Errc::out_of_memory || e.code() == Errc::newer_format) throw;
  return e.what();
}

}  // namespace vellum
