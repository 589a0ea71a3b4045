// base/boot_id.hpp: the identity of the current boot.
#pragma once

#include <string>

namespace vellum::base {

// Changes at each boot: random(4). Empty if the kernel does not provide it.
const std::string& boot_id();

}  // namespace vellum::base
