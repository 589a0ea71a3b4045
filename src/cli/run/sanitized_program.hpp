// cli/run/sanitized_program.hpp: programs built with a sanitizer, whose library has to be loaded first.
#pragma once

#include <string>

namespace vellum::cli {

// The library that has to precede libvellum-run.so in LD_PRELOAD if the program needs
// AddressSanitizer; otherwise empty. Throws Errc::unsupported for ThreadSanitizer: it replaces the
// same functions, and starts neither before nor after another library that does.
std::string sanitizer_library(const std::string& program);

}  // namespace vellum::cli
