// cli/top/view.hpp: samples as people see them: what happened between two of them.
#pragma once

#include <chrono>
#include <vector>

#include "cli/terminal/output.hpp"
#include "cli/top/sample.hpp"

namespace vellum::cli {

// A row for each region of `now`, with rates since `before`, which was `elapsed` earlier. A region
// that is new since then has its rates from its opening on.
void print_regions(Output& out, const std::vector<RegionSample>& before,
                   const std::vector<RegionSample>& now, std::chrono::duration<double> elapsed);

Json regions_json(const std::vector<RegionSample>& samples);

}  // namespace vellum::cli
