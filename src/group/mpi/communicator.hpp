// group/mpi/communicator.hpp: group::Ranks with a communicator of MPI, and its
// public report.
#pragma once

#include <mpi.h>
#include <utility>
#include <vellum/mpi.hpp>

#include "group/job.hpp"
#include "group/ranks.hpp"

namespace vellum::mpi {

// Duplicates the given communicator, so that its messages never mix with the program's. A version
// needs two collective calls if each rank's message fits into a block.
class Communicator final : public group::Ranks {
 public:
  explicit Communicator(MPI_Comm given);  // collective
  ~Communicator() override;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<group::Bytes> gather(std::span<const std::byte> mine) override;
  group::Bytes broadcast(group::Bytes bytes, int from) override;

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

// The public form of a job's report.
inline GroupReport report_of(group::JobReport&& report) {
  return {report.number,   report.bytes_written, std::move(report.commits),
          report.own_time, report.slowest_time,  report.coordination_time};
}

}  // namespace vellum::mpi
