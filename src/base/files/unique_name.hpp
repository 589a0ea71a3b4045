// base/files/unique_name.hpp: names for unfinished files.
#pragma once

#include <string>

namespace vellum::base {

// "PID.TIME.N": unique among the processes that share a directory, even across machines and
// process-id namespaces. O_EXCL turns the improbable clash into an error.
std::string unique_suffix();

}  // namespace vellum::base
