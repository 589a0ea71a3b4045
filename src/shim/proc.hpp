// shim/proc.hpp: what the kernel knows of this process's descriptors and mappings (proc(5)): those
// that this library has not seen made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace vellum::shim {

// The process's number, and of the first in a PID namespace that namespace, too: its child may be
// the first in another.
std::uint64_t process_identity() noexcept;

// Whether there is one among all that are open, without allocating.
bool any_descriptor(bool (*is)(int fd) noexcept) noexcept;

// All that are open, ascending.
std::vector<int> descriptors_of_process();

// Regular, and open to write.
bool writes_a_file(int fd);

struct KernelMapping {
  std::byte *begin, *end;
  std::uint64_t offset_bytes;
  bool shared_to_read;  // and for nothing else
  std::uint64_t inode;  // of no file: 0
  std::string path;
};
// Calls `visit` for each mapping of the process.
void for_mappings(const std::function<void(const KernelMapping& mapping)>& visit);
// What the kernel has mapped of the file: by number and path, as the device that /proc/self/maps
// gives is not everywhere stat(2)'s.
std::vector<KernelMapping> kernel_mappings(std::uint64_t inode, const std::string& path);

}  // namespace vellum::shim
