// cli/names/version_names.hpp: names of versions on a command line: the same as the library's.
#pragma once

#include "region/api/version_names.hpp"

namespace vellum::cli {

using api::line_of;
using api::newest_at;
using api::resolve_version;
using api::sort_newest_first;

}  // namespace vellum::cli
