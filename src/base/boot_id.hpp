// base/boot_id.hpp: the identity of the current boot.
#pragma once

#include <fstream>
#include <string>

namespace vellum::base {

// Changes at each boot: random(4). Empty if the kernel does not provide it.
inline const std::string& boot_id() {
  static const std::string id = [] {
    std::string text;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
    return text;
  }();
  return id;
}

}  // namespace vellum::base
