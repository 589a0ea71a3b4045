// base/files/real_path.hpp: one spelling for each place in the file system.
#pragma once

#include <string>

namespace vellum::base {

// Absolute, without links as far as the path exists. On one machine two paths to the same place
// give the same text. Looks at names only, so it does not go through the seam (base/files/file.hpp).
std::string real_path(const std::string& path);

// The path of an open file, as the kernel has it. Empty: none.
std::string path_of(int fd);

}  // namespace vellum::base
