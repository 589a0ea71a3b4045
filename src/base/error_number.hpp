// base/error_number.hpp: failures as callers know them who know errno(3) only.
#pragma once

#include <cerrno>
#include <exception>
#include <vellum/error.hpp>

namespace vellum::base {

// The number that says it best; EIO where none does.
int error_number(Errc code) noexcept;

// 0, or -1 and errno.
inline int as_result(int error) noexcept {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// Runs it: 0, or the number of the exception, of whose message complain(const char*) has told.
template <typename Body, typename Complain>
int error_of(const Body& body, const Complain& complain) noexcept {
  try {
    body();
    return 0;
  } catch (const Error& error) {
    complain(error.what());
    return error_number(error.code());
  } catch (const std::exception& error) {
    complain(error.what());
    return ENOMEM;
  }
}

}  // namespace vellum::base
