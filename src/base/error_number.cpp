#include "base/error_number.hpp"

namespace vellum::base {

int error_number(Errc code) noexcept {
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

}  // namespace vellum::base
