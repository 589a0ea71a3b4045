// The version of the library (vellum/version.hpp).
#include <vellum/version.hpp>

namespace vellum {

const char* version() noexcept { return VELLUM_VERSION_STRING; }

}  // namespace vellum
