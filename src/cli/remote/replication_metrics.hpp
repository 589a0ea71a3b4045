// cli/remote/replication_metrics.hpp: the state of a replication as OpenMetrics text.
#pragma once

#include <string>
#include <vellum/remote.hpp>

namespace vellum::cli {

// Each metric with its type and meaning, one line for it, and "# EOF" at the end.
std::string replication_metrics(const std::string& store, const std::string& url,
                                const ReplicateState& state);

}  // namespace vellum::cli
