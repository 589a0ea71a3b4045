// bench/lib/shared_versions.hpp: several processes that read all of one version.
#pragma once

#include "lib/report.hpp"

namespace bench {

// A history as in whole_versions.hpp, its files in the page cache. `--readers` processes open its
// newest version at once, and each reads every 64 KiB of it, in an order of its own: with
// RegionOptions::share, without it, and the mapped full copy. For comparison: one process. The
// memory is the sum of the processes' growth in Pss, which counts shared pages once.
void run_shared_versions(const Options& options, Report& report);

}  // namespace bench
