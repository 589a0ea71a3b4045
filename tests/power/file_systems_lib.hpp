// The file systems under test.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "power/mount_lib.hpp"
#include "power/shared_memory_lib.hpp"

namespace vellum::power {

struct FileSystem {
  const char* name;
  MountAs mount_as;
  std::uint64_t disk_bytes;
  const char* make;  // a shell command; the path of the disk follows
  // Its superblock, where the file system does not mount after a write that is torn between two
  // sectors of 512 bytes. Everything else is torn.
  std::uint64_t whole_at_bytes = 0, whole_bytes = 0;
};

inline void PrintTo(const FileSystem& system, std::ostream* out) { *out << system.name; }

const std::vector<FileSystem>& file_systems();
// A disk in memory with an empty file system on it.
Descriptor make_disk(const FileSystem& system);
// The reason why this machine cannot cut power on it; empty: it can.
std::string why_not(const FileSystem& system);

}  // namespace vellum::power
