// base/files/real_path.hpp: canonical paths.
#pragma once

#include <string>

namespace vellum::base {

// Absolute, without links as far as the path exists. On one machine two paths to the same file give
// the same text. Reads only names, hence it does not use an Fs (base/files/file.hpp).
std::string real_path(const std::string& path);

// The path of an open file according to the kernel. Empty: none.
std::string path_of(int fd);

}  // namespace vellum::base
