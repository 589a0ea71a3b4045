// region/commit_report.hpp: fills a CommitReport from the store's costs.
#pragma once

#include <chrono>
#include <vellum/region.hpp>

#include "store/branch/branch_writer.hpp"

namespace vellum::region {

inline void set_cost(CommitReport& report, const store::CommitCost& cost) {
  report.bytes_written = cost.bytes_written;
  report.checkpointed = cost.checkpointed;
  report.write_time = std::chrono::nanoseconds(cost.write_ns);
  report.flush_time = std::chrono::nanoseconds(cost.flush_ns);
}

}  // namespace vellum::region
