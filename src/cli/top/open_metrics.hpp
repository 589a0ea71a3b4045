// cli/top/open_metrics.hpp: samples as OpenMetrics text, for collectors such as Prometheus.
#pragma once

#include <string>
#include <vector>

#include "cli/top/sample.hpp"

namespace vellum::cli {

// A text as the value of a label, and the lines in front of a metric's values; no `unit`: "".
std::string metric_label(const std::string& text);
std::string metric_head(const char* name, const char* type, const char* unit, const char* help);

// Each metric with its type and meaning, a line for each region, and "# EOF" at the end.
std::string open_metrics(const std::vector<RegionSample>& samples);

}  // namespace vellum::cli
