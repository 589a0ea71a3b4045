// cli/remote/replication_reports.hpp: what `vellum replicate` reports while it runs.
#pragma once

#include <chrono>
#include <string>
#include <vellum/remote.hpp>

#include "cli/remote/service_manager.hpp"
#include "cli/terminal/command.hpp"

namespace vellum::cli {

// To standard error, or with --json as lines on standard output; to the service manager; and to
// the file of metrics, unless its path is empty.
class ReplicationReports {
 public:
  ReplicationReports(Context& context, std::string store, std::string url, std::string metrics);

  // Call it often: it reports only what has changed.
  void tell(const ReplicateState& state);
  void tell_end(const ReplicateState& state);

 private:
  void explain(const ReplicateState& state) const;
  void write_metrics(const ReplicateState& state);
  Json line(const ReplicateState& state) const;

  Context& context_;
  const std::string store_, url_, metrics_;
  ServiceManager manager_;
  ReplicateState told_;
  bool has_told_ = false;
  std::chrono::steady_clock::time_point written_{};  // the metrics
  std::string metrics_problem_;                      // of the last write; empty: none
};

}  // namespace vellum::cli
