// base/unique_name.hpp: names for files in the making.
#pragma once

#include <string>

namespace vellum::base {

// "PID.TIME.N": unique among the processes that share a directory, also across machines and
// process-id namespaces. O_EXCL turns the improbable clash into an error.
std::string unique_suffix();

}  // namespace vellum::base
