// run/process/proc.hpp: this process's descriptors and mappings as the kernel reports them
// (proc(5)), including those that were created without this library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace vellum::preload {

// The process ID; for the first process of a PID namespace, the namespace, too: its child may be
// the first of another namespace.
std::uint64_t process_identity() noexcept;

// Whether `is` holds for any open descriptor. Allocates nothing.
bool any_descriptor(bool (*is)(int fd) noexcept) noexcept;

// All open descriptors, ascending.
std::vector<int> descriptors_of_process();

// Whether it is a regular file, open for writing.
bool writes_a_file(int fd);

struct KernelMapping {
  std::byte *begin, *end;
  std::uint64_t offset_bytes;
  bool shared_to_read;  // readable, and nothing else
  std::uint64_t inode;  // 0: no file
  std::string path;
};
// Calls `visit` for each mapping of the process.
void for_mappings(const std::function<void(const KernelMapping& mapping)>& visit);
// The kernel's mappings of the file. They are matched by inode and path: the device in
// /proc/self/maps is not stat(2)'s on every file system.
std::vector<KernelMapping> kernel_mappings(std::uint64_t inode, const std::string& path);

}  // namespace vellum::preload
