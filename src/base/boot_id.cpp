#include "base/boot_id.hpp"

#include <fstream>
#include <string>

namespace vellum::base {

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

}  // namespace vellum::base
