// What a shared library exports: elf(5).
#pragma once

#include <set>
#include <string>

namespace vellum::cli_test {

// All versions of each name, also those that only programs of old are linked to; without what
// GLIBC_PRIVATE marks as the C library's own.
std::set<std::string> exported_names(const std::string& library);

}  // namespace vellum::cli_test
