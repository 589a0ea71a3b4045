#include "cli/remote/replication_reports.hpp"

#include <span>
#include <utility>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "cli/top/open_metrics.hpp"

namespace vellum::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kMetricsInterval{5};

std::string state_text(const ReplicateState& state) {
  if (!state.failure.empty()) return "retries after a failure: " + printable(state.failure);
  return fmt::format("sent {} ({})", counted(state.versions, "version"),
                     human_bytes(state.bytes_uploaded));
}

// OpenMetrics text: each metric with its type and meaning, one line for it, and "# EOF" at the end.
std::string replication_metrics(const std::string& store, const std::string& url,
                                const ReplicateState& state) {
  const std::string labels =
      fmt::format(R"(store="{}",url="{}")", metric_label(store), metric_label(url));
  const auto line = [&](const char* name, const char* suffix, const std::string& value) {
    return fmt::format("{}{}{{{}}} {}\n", name, suffix, labels, value);
  };
  const auto counter = [&](const char* name, const char* unit, const char* help,
                           std::uint64_t value) {
    return metric_head(name, "counter", unit, help) + line(name, "_total", std::to_string(value));
  };
  const auto behind = state.behind.count();
  std::string out = metric_head("vellum_replication_lag_seconds", "gauge", "seconds",
                                "Time since a version was noticed that the remote lacks.");
  out += line("vellum_replication_lag_seconds", "",
              fmt::format("{}.{:03}", behind / 1000, behind % 1000));
  out += metric_head("vellum_replication_failing", "gauge", "", "1: the last push failed.");
  out += line("vellum_replication_failing", "", state.failure.empty() ? "0" : "1");
  out += counter("vellum_replication_pushes", "", "Pushes.", state.pushes);
  out += counter("vellum_replication_versions", "", "Versions sent.", state.versions);
  out += counter("vellum_replication_sent_bytes", "bytes", "Bytes sent.", state.bytes_uploaded);
  return out + "# EOF\n";
}

}  // namespace

ReplicationReports::ReplicationReports(Context& context, std::string store, std::string url,
                                       std::string metrics)
    : context_(context),
      store_(std::move(store)),
      url_(std::move(url)),
      metrics_(std::move(metrics)) {}

void ReplicationReports::tell(const ReplicateState& state) {
  manager_.tell(state_text(state));
  const bool is_new = !has_told_ || state.failure != told_.failure || state.pushes != told_.pushes;
  if (is_new || Clock::now() - written_ >= kMetricsInterval) {
    write_metrics(state);
    written_ = Clock::now();
  }
  if (!is_new) return;
  if (context_.json) {
    context_.out.print_json(line(state));
    context_.out.flush();
  } else {
    explain(state);
  }
  told_ = state;
  has_told_ = true;
}

void ReplicationReports::tell_end(const ReplicateState& state) {
  manager_.tell_end();
  write_metrics(state);
}

void ReplicationReports::explain(const ReplicateState& state) const {
  if (state.failure == told_.failure) return;
  context_.explain(state.failure.empty() ? "replicate: the remote has all commits again"
                                         : "replicate: retries after a failure: " + state.failure);
}

// A collector reads the old file or the new one. Durability does not matter, and replication goes
// on without the file.
void ReplicationReports::write_metrics(const ReplicateState& state) {
  if (metrics_.empty()) return;
  std::string problem;
  try {
    const std::string text = replication_metrics(store_, url_, state);
    base::NewFile file(base::posix_fs(), metrics_);
    file.file().pwrite(std::as_bytes(std::span(text)), 0);
    file.replace_unsynced(metrics_);
  } catch (const Error& e) {
    problem = e.what();
  }
  if (!problem.empty() && problem != metrics_problem_) {
    context_.explain("replicate: no metrics: " + problem);
  }
  metrics_problem_ = std::move(problem);
}

Json ReplicationReports::line(const ReplicateState& state) const {
  return Json{{"time", utc_time(std::chrono::system_clock::now())},
              {"behind_ms", state.behind.count()},
              {"pushes", state.pushes},
              {"versions", state.versions},
              {"bytes_uploaded", state.bytes_uploaded},
              {"failure", state.failure.empty() ? Json(nullptr) : Json(state.failure)}};
}

}  // namespace vellum::cli
