// cli/top/view.hpp: samples as a table, JSON, and OpenMetrics text.
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

// For collectors such as Prometheus: each metric with its type and meaning, a line for each region, and "# EOF" at the end.
std::string open_metrics(const std::vector<RegionSample>& samples);

}  // namespace vellum::cli
