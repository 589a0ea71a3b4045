// base/error_number.hpp: errno values for errors.
#pragma once

#include <cassert>
#include <cerrno>
#include <exception>
#include <vellum/error.hpp>

namespace vellum::base {

// The closest errno value; otherwise EIO.
inline int error_number(Errc code) noexcept {
  switch (code) {
    case Errc::busy:
      return EBUSY;
    case Errc::no_space:
      return ENOSPC;
    case Errc::out_of_memory:
      return ENOMEM;
    case Errc::read_only:
      return EROFS;
    case Errc::invalid_argument:
      return EINVAL;
    case Errc::unsupported:
      return ENOTSUP;
    default:
      return EIO;
  }
}

// Whether a call has failed for lack of descriptors or memory: it may succeed later.
constexpr bool is_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

// 0, or -1 and errno.
inline int as_result(int error) noexcept {
  assert(error >= 0);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// Runs `body`. Returns 0, or its exception's errno value, with the message passed to `complain`.
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
