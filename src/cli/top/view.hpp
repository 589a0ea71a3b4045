// cli/top/view.hpp: samples as a table and JSON.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/terminal/output.hpp"
#include "cli/top/sample.hpp"

namespace vellum::cli {

// Prints a row for each region of `now`, with rates since `before`, which was `elapsed` earlier.
// For a region that is new since then, the rates cover the time since its opening.
void print_regions(Output& out, const std::vector<RegionSample>& before,
                   const std::vector<RegionSample>& now, std::chrono::duration<double> elapsed);

Json regions_json(const std::vector<RegionSample>& samples);

}  // namespace vellum::cli
