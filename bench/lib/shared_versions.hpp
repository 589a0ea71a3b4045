// bench/lib/shared_versions.hpp: several processes read all of one version.
#pragma once

#include "lib/report.hpp"

namespace bench {

// A history as in whole_versions.hpp, its files in the page cache. `--readers` processes open its
// newest version at once, and each reads every 64 KiB of it, in a different order: with
// RegionOptions::share, without it, and the mapped full copy. The peer: one process. The memory is
// the sum of the processes' growth in Pss; shared pages count once.
void run_shared_versions(const Options& options, Report& report);

}  // namespace bench
