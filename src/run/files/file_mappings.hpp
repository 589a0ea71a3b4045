// run/files/file_mappings.hpp: the program's mappings of live files.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "run/files/file_states.hpp"

namespace vellum::preload {

// Threads: any.
class FileMappings {
 public:
  explicit FileMappings(FileStates& states) noexcept : states_(states) {}

  // For a descriptor that is known(). Returns the address; MAP_FAILED and errno; or null if the
  // kernel has to map it.
  void* map(int fd, std::size_t length_bytes, int protection, int flags, off_t offset_bytes);
  std::shared_ptr<LiveFile> live_at(const void* address);
  // REQUIRES, of both: live_at(address). Return 0 or errno.
  int unmap(void* address, std::size_t length_bytes);
  int remap(void* address, std::size_t old_bytes, std::size_t new_bytes);

 private:
  FileStates& states_;
};

}  // namespace vellum::preload
