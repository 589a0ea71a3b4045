// bench/lib/whole_versions.hpp: reads all of an old version, in random order of its chunks.
#pragma once

#include "lib/report.hpp"

namespace bench {

// A history of `--mib` MiB and `--snapshots` snapshots for each kind of change. Fresh processes
// open the newest version and a middle one and read each 64 KiB of it once, in random order: first
// with nothing in the page cache, then with the files there, then again in the same process.
// Another process calls prefetch(). Beside it: a full copy, opened by mmap, read in the same order.
void run_whole_versions(const Options& options, Report& report);

}  // namespace bench
