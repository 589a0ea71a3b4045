// bench/lib/memory_group.hpp: a process under a memory limit of the kernel: a cgroup (v1 or v2).
#pragma once

#include <cstdint>
#include <string>

namespace bench {

class MemoryGroup {
 public:
  // Creates a group below that of this process. Throws without root or without a memory controller.
  explicit MemoryGroup(std::uint64_t limit_bytes);
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  void enter() const;  // the calling process, permanently

 private:
  std::string path_;
  bool v2_ = false;
};

// How much the kernel reads around a fault in a file mapping, for the disk below a path; 0:
// unknown.
std::uint64_t read_ahead_kib(const std::string& path);
// Drops a file, or all files below a directory, from the page cache, after writing them out.
void drop_from_cache(const std::string& path);

}  // namespace bench
