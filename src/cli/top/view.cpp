#include "cli/top/view.hpp"
#include "cli/terminal/table.hpp"

#include <algorithm>

namespace vellum::cli {
namespace {

RegionCounts counts_before(const std::vector<RegionSample>& before, const RegionSample& now) {
  const auto found = std::find_if(before.begin(), before.end(), [&](const RegionSample& s) {
    return s.process == now.process && s.id == now.id;
  });
  return found == before.end() ? RegionCounts{} : found->counts;
}

// Counters only grow, unless a process forges them.
double rate(std::uint64_t before, std::uint64_t now, std::chrono::duration<double> elapsed) {
  return now < before ? 0 : static_cast<double>(now - before) / elapsed.count();
}

std::string rate_text(double rate) {
  return rate > 0 && rate < 10 ? fmt::format("{:.1f}", rate) : fmt::format("{:.0f}", rate);
}

}  // namespace

void print_regions(Output& out, const std::vector<RegionSample>& before,
                   const std::vector<RegionSample>& now, std::chrono::duration<double> elapsed) {
  using enum Table::Align;
  using enum Table::Narrowing;
  Table table({{"pid", right},
               {"program", left, 8, cut},
               {"version", left, 9, cut},
               {"engine", left, 7},
               {"commits/s", right},
               {"dirty", right},
               {"written/s", right},
               {"backlog", right, 5},
               {"resident", right},
               {"spilled", right, 4},
               {"reads/s", right, 2},
               {"writes/s", right, 3},
               {"present/s", right, 1}});
  for (const RegionSample& s : now) {
    const RegionCounts then = counts_before(before, s);
    const auto per_second = [&](std::uint64_t a, std::uint64_t b) { return rate(a, b, elapsed); };
    const auto faults = [&](std::size_t kind) {
      return rate_text(per_second(then.faults[kind], s.counts.faults[kind]));
    };
    const double written = per_second(then.bytes_written, s.counts.bytes_written);
    table.add({std::to_string(s.process), printable(s.program), printable(s.version), s.engine,
               rate_text(per_second(then.commits, s.counts.commits)),
               s.counts.dirty_pages ? std::to_string(*s.counts.dirty_pages) : "-",
               human_bytes(static_cast<std::uint64_t>(written)),
               human_bytes(s.counts.backlog_bytes), human_bytes(s.counts.resident_bytes),
               human_bytes(s.counts.spilled_bytes), faults(0), faults(1), faults(2)});
  }
  table.print(out);
}

Json regions_json(const std::vector<RegionSample>& samples) {
  Json regions = Json::array();
  for (const RegionSample& s : samples) {
    const RegionCounts& c = s.counts;
    regions.push_back(Json{
        {"pid", s.process},
        {"program", s.program},
        {"store", s.store},
        {"version", s.version},
        {"writable", s.writable},
        {"engine", s.engine},
        {"region_bytes", c.region_bytes},
        {"resident_bytes", c.resident_bytes},
        {"spilled_bytes", c.spilled_bytes},
        {"spill_written_bytes", c.spill_written_bytes},
        {"backlog_bytes", c.backlog_bytes},
        {"dirty_pages", c.dirty_pages ? Json(*c.dirty_pages) : Json()},
        {"commits", c.commits},
        {"commit_ns", c.commit_ns},
        {"flush_ns", c.flush_ns},
        {"pages_dirty", c.pages_dirty},
        {"pages_changed", c.pages_changed},
        {"bytes_written", c.bytes_written},
        {"chunks_in", c.chunks_in},
        {"chunks_out", c.chunks_out},
        {"faults", Json{{"read", c.faults[0]}, {"write", c.faults[1]}, {"present", c.faults[2]}}}});
  }
  return Json{{"regions", std::move(regions)}};
}

}  // namespace vellum::cli
