// Loop devices and mounts that the kernel removes, however the process ends.
#pragma once

#include <string>

#include "power/shared_memory_lib.hpp"

namespace vellum::power {

// A mount namespace of this process only: the kernel unmounts everything in it when its last
// process ends. False: not permitted here.
bool make_mounts_private();

// Detached by the kernel when its last user closes it.
class LoopDevice {
 public:
  explicit LoopDevice(const std::string& file);
  const std::string& path() const { return path_; }
  // Drops the device's page cache. REQUIRES: it is not mounted.
  void forget_pages();

 private:
  std::string path_;
  Descriptor device_;
};

struct MountAs {
  const char* type;
  const char* options;
};

class Mount {
 public:
  // Throws std::system_error.
  Mount(const std::string& device, std::string directory, const MountAs& as);
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  void unmount();  // throws while it is in use

 private:
  std::string directory_;
  bool mounted_ = true;
};

}  // namespace vellum::power
