// cli/top/open_metrics.hpp: samples as OpenMetrics text, for collectors such as Prometheus.
#pragma once

#include <string>
#include <vector>

#include "cli/top/sample.hpp"

namespace vellum::cli {

// Each metric with its type and meaning, a line for each region, and "# EOF" at the end.
std::string open_metrics(const std::vector<RegionSample>& samples);

}  // namespace vellum::cli
