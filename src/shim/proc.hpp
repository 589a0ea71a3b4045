// shim/proc.hpp: what the kernel knows of this process's descriptors and mappings (proc(5)): those
// that this library has not seen made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vellum::shim {

// All that are open, ascending.
std::vector<int> descriptors_of_process();

// Regular, and open to write.
bool writes_a_file(int fd);

// Whether the kernel has a mapping of the file: by number and path, as the device that
// /proc/self/maps gives is not everywhere stat(2)'s.
bool kernel_maps(std::uint64_t inode, const std::string& path);

}  // namespace vellum::shim
