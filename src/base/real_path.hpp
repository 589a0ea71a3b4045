// base/real_path.hpp: one spelling for the place that a path leads to.
#pragma once

#include <string>

namespace vellum::base {

// Absolute, without links as far as the path exists. Two paths to the same place give the same
// text, on one machine. Looks at names only, so it does not go through the seam (base/file.hpp).
std::string real_path(const std::string& path);

// Of an open file, as the kernel has it. Empty: none.
std::string path_of(int fd);

}  // namespace vellum::base
