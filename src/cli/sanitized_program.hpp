// cli/sanitized_program.hpp: programs that a sanitizer was compiled into, which wants to be the
// first library of all.
#pragma once

#include <string>

namespace vellum::cli {

// The library that has to come before libvellum-run.so in LD_PRELOAD, for a program that needs
// AddressSanitizer's; else empty. Throws Errc::unsupported for ThreadSanitizer, which takes over
// the same functions, and does not start behind or in front of another that does.
std::string library_to_come_first(const std::string& program);

}  // namespace vellum::cli
