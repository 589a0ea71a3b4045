// The exports of a shared library: elf(5).
#pragma once

#include <set>
#include <string>

namespace vellum::cli_test {

// All versions of each name, also those that only old programs are linked to, without the C
// library's own names (GLIBC_PRIVATE).
std::set<std::string> exported_names(const std::string& library);

}  // namespace vellum::cli_test
