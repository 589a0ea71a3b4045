#include "cli/top/open_metrics.hpp"

#include <fmt/format.h>

#include "cli/terminal/output.hpp"

namespace vellum::cli {
namespace {

struct Metric {
  const char* name;
  const char* type;
  const char* unit;  // empty: none
  const char* help;
  std::string (*value)(const RegionCounts& counts);
};

std::string number_text(std::uint64_t value) { return std::to_string(value); }
std::string seconds_text(std::uint64_t nanoseconds) {
  return fmt::format("{}.{:09}", nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000);
}

using Counts = const RegionCounts&;
constexpr Metric kMetrics[] = {
    {"vellum_region_bytes", "gauge", "bytes", "Size of the region.",
     [](Counts c) { return number_text(c.region_bytes); }},
    {"vellum_resident_bytes", "gauge", "bytes", "Committed copies and private ones in memory.",
     [](Counts c) { return number_text(c.resident_bytes); }},
    {"vellum_spilled_bytes", "gauge", "bytes", "Dirty pages in the spill file.",
     [](Counts c) { return number_text(c.spilled_bytes); }},
    {"vellum_backlog_bytes", "gauge", "bytes",
     "Journal that no checkpoint has written to packs yet.",
     [](Counts c) { return number_text(c.backlog_bytes); }},
    {"vellum_dirty_pages", "gauge", "", "Pages in memory that were written since the last commit.",
     [](Counts c) { return c.dirty_pages ? number_text(*c.dirty_pages) : "NaN"; }},
    {"vellum_commits", "counter", "", "Commits.", [](Counts c) { return number_text(c.commits); }},
    {"vellum_commit_seconds", "counter", "seconds", "Time of all commits.",
     [](Counts c) { return seconds_text(c.commit_ns); }},
    {"vellum_flush_seconds", "counter", "seconds", "Time of their flushes.",
     [](Counts c) { return seconds_text(c.flush_ns); }},
    {"vellum_committed_pages", "counter", "", "Pages that commits found dirty.",
     [](Counts c) { return number_text(c.pages_dirty); }},
    {"vellum_changed_pages", "counter", "", "Pages whose bytes differed.",
     [](Counts c) { return number_text(c.pages_changed); }},
    {"vellum_written_bytes", "counter", "bytes", "Written to journal and packs.",
     [](Counts c) { return number_text(c.bytes_written); }},
    {"vellum_spill_written_bytes", "counter", "bytes", "Written to the spill file.",
     [](Counts c) { return number_text(c.spill_written_bytes); }},
    {"vellum_arrived_chunks", "counter", "", "Chunks loaded into memory.",
     [](Counts c) { return number_text(c.chunks_in); }},
    {"vellum_departed_chunks", "counter", "", "Chunks evicted from memory.",
     [](Counts c) { return number_text(c.chunks_out); }},
};

constexpr const char* kFaultKindNames[] = {"read", "write", "present"};
static_assert(std::size(kFaultKindNames) == region::statistics::kFaultKinds);

std::string labels(const RegionSample& s) {
  return fmt::format(R"(pid="{}",program="{}",store="{}",version="{}",mode="{}")", s.process,
                     metric_label(s.program), metric_label(s.store), metric_label(s.version),
                     s.writable ? "write" : "read");
}

}  // namespace

std::string metric_label(const std::string& text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string metric_head(const char* name, const char* type, const char* unit, const char* help) {
  std::string out = fmt::format("# TYPE {} {}\n", name, type);
  if (*unit != '\0') out += fmt::format("# UNIT {} {}\n", name, unit);
  return out + fmt::format("# HELP {} {}\n", name, help);
}

std::string open_metrics(const std::vector<RegionSample>& samples) {
  std::string out;
  for (const Metric& metric : kMetrics) {
    out += metric_head(metric.name, metric.type, metric.unit, metric.help);
    const char* const suffix = std::string_view(metric.type) == "counter" ? "_total" : "";
    for (const RegionSample& s : samples)
      out += fmt::format("{}{}{{{}}} {}\n", metric.name, suffix, labels(s), metric.value(s.counts));
  }
  out += metric_head("vellum_faults", "counter", "", "Page faults, by kind.");
  for (const RegionSample& s : samples) {
    for (std::size_t kind = 0; kind < s.counts.faults.size(); ++kind)
      out += fmt::format("vellum_faults_total{{{},kind=\"{}\"}} {}\n", labels(s),
                         kFaultKindNames[kind], s.counts.faults[kind]);
  }
  return out + "# EOF\n";
}

}  // namespace vellum::cli
