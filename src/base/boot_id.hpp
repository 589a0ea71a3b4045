// base/boot_id.hpp: which start of the system this is.
#pragma once

#include <string>

namespace vellum::base {

// Changes at each start: random(4). Empty where the kernel does not say.
const std::string& boot_id();

}  // namespace vellum::base
