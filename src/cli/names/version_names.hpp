// cli/names/version_names.hpp: versions as a command line names them: as the library does.
#pragma once

#include "region/api/version_names.hpp"

namespace vellum::cli {

using api::line_of;
using api::resolve_version;
using api::sort_newest_first;

}  // namespace vellum::cli
