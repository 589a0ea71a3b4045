// remote/s3/ca_bundle.hpp: where the machine has its certificate authorities.
#pragma once

#include <string>

namespace vellum::remote {

// A file, or "": libcurl knows by itself, as the machine's does. One that is linked in knows nothing of
// the machine, so the file is looked for where distributions have it. Errc::unsupported: nowhere.
std::string find_ca_bundle();

}  // namespace vellum::remote
