// cli/terminal/exit_status.cpp: the exit status for each error code.
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {

int exit_status(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
      return kExitOk;
    case Errc::invalid_argument:
      return 2;
    case Errc::not_found:
      return 3;
    case Errc::already_exists:
      return 4;
    case Errc::not_a_store:
      return 5;
    case Errc::newer_format:
      return 6;
    case Errc::busy:
      return 7;
    case Errc::read_only:
      return 8;
    case Errc::no_space:
      return 9;
    case Errc::io:
    case Errc::poisoned:  // a flush failed: to the shell this is an I/O error
      return 10;
    case Errc::corrupted:
      return 11;
    case Errc::wrong_key:
      return kExitWrongKey;
    case Errc::untrusted:
      return kExitUntrusted;
    case Errc::unsupported:
    case Errc::out_of_memory:
      return kExitOther;
  }
  return kExitOther;
}

}  // namespace vellum::cli
