#include "cli/remote/replication_metrics.hpp"

#include <fmt/format.h>

#include "cli/top/open_metrics.hpp"

namespace vellum::cli {

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

}  // namespace vellum::cli
