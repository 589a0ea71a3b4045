// base/fail.hpp: throwing an Error, and saying where it happened.
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

// Runs `body`. An Error that it throws is thrown on as "<where>: <what>".
template <typename Body>
auto with_context(const std::string& where, Body&& body) {
  try {
    return body();
  } catch (const Error& e) {
    throw Error(e.code(), where + ": " + e.what());
  }
}

// What a report of damage says of an error. Memory and descriptors that have run out are no damage,
// nor is what a newer Vellum has written: such an error is thrown on. REQUIRES: `e` is being
// handled.
inline std::string damage_reason(const Error& e) {
  if (e.code() == Errc::out_of_memory || e.code() == Errc::newer_format) throw;
  return e.what();
}

}  // namespace vellum
