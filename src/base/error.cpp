// base/error.cpp: the names of the error codes.
#include <vellum/error.hpp>

namespace vellum {

const char* errc_name(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
      return "ok";
    case Errc::invalid_argument:
      return "invalid_argument";
    case Errc::not_found:
      return "not_found";
    case Errc::already_exists:
      return "already_exists";
    case Errc::not_a_store:
      return "not_a_store";
    case Errc::newer_format:
      return "newer_format";
    case Errc::busy:
      return "busy";
    case Errc::read_only:
      return "read_only";
    case Errc::no_space:
      return "no_space";
    case Errc::io:
      return "io";
    case Errc::corrupted:
      return "corrupted";
    case Errc::poisoned:
      return "poisoned";
    case Errc::unsupported:
      return "unsupported";
    case Errc::out_of_memory:
      return "out_of_memory";
    case Errc::wrong_key:
      return "wrong_key";
    case Errc::untrusted:
      return "untrusted";
  }
  return "unknown";  // a number from the C interface that no enumerator has
}

}  // namespace vellum
