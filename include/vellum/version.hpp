// vellum/version.hpp: the version of the headers (VELLUM_VERSION_..., see vellum/version.h), and of
// the library.
#ifndef VELLUM_VERSION_HPP
#define VELLUM_VERSION_HPP

#include <vellum/version.h>

namespace vellum {

// "1.2.3": the version of the library that runs, which may be newer than the headers.
const char* version() noexcept;

}  // namespace vellum

#endif  // VELLUM_VERSION_HPP
