#include "base/boot_id.hpp"

#include <fstream>
#include <string>

namespace vellum::base {

const std::string& boot_id() {
  static const std::string id = [] {
    std::string text;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
    return text;
  }();
  return id;
}

}  // namespace vellum::base
