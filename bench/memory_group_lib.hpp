// bench/memory_group_lib.hpp: a process under a memory limit of the kernel's: a cgroup (v1 or v2).
#pragma once

#include <cstdint>
#include <string>

namespace bench {

class MemoryGroup {
 public:
  // Makes one below the group of this process. Throws when it cannot: that needs root, and a
  // memory controller.
  explicit MemoryGroup(std::uint64_t limit_bytes);
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  void enter() const;  // the calling process, for good

 private:
  std::string path_;
  bool v2_ = false;
};

// Bytes that the disk below a path has been told to write since it started; 0: not known. All that
// the machine writes there is in it.
std::uint64_t disk_written_bytes(const std::string& path);
// Takes a file, or all files below a directory, out of the page cache, after writing them out.
void drop_from_cache(const std::string& path);

}  // namespace bench
