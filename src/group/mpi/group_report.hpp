// group/mpi/group_report.hpp: converts a job's report to the public GroupReport.
#pragma once

#include <utility>
#include <vellum/mpi.hpp>

#include "group/job.hpp"

namespace vellum::mpi {

inline GroupReport report_of(group::JobReport&& report) {
  return {report.number,   report.bytes_written, std::move(report.commits),
          report.own_time, report.slowest_time,  report.coordination_time};
}

}  // namespace vellum::mpi
