// cli/top/cmd_top.cpp: vellum top: the activity of the regions of running processes.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "base/fail.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/table.hpp"
#include "cli/top/open_metrics.hpp"
#include "cli/top/sample.hpp"

namespace vellum::cli {
namespace {

struct TopArguments {
  std::string store;
  pid_t process = 0;
  double interval_seconds = 1;
  bool once = false;
  bool metrics = false;
};

using Clock = std::chrono::steady_clock;

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

// Prints a row for each region of `now`, with rates since `before`, which was `elapsed` earlier. For
// a region that is new since then, the rates cover the time since its opening.
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

// On a terminal, like top(1), until the user ends it.
int watch(Context& context, const TopArguments& arguments) {
  const bool repeats = !arguments.once && ::isatty(STDOUT_FILENO) == 1;
  auto before = sample_regions(arguments.process, arguments.store);
  auto then = Clock::now();
  do {
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.interval_seconds));
    auto now = sample_regions(arguments.process, arguments.store);
    const auto time = Clock::now();
    if (repeats) context.out.write("\x1b[H\x1b[2J");  // to the top, and clear
    if (!now.empty()) print_regions(context.out, before, now, time - then);
    if (now.empty()) context.explain("no process has a region open, or this user may read none");
    context.out.flush();
    before = std::move(now);
    then = time;
  } while (repeats);
  return kExitOk;
}

int run_top(Context& context, const TopArguments& arguments) {
  if (arguments.interval_seconds < 0.1 || arguments.interval_seconds > 3600)
    fail(Errc::invalid_argument, "--interval takes 0.1 to 3600 seconds");
  if (arguments.metrics && context.json)
    fail(Errc::invalid_argument, "--metrics and --json exclude each other");
  if (!arguments.metrics && !context.json) return watch(context, arguments);
  const auto samples = sample_regions(arguments.process, arguments.store);
  if (context.json) {
    context.out.print_json(regions_json(samples));
  } else {
    context.out.write(open_metrics(samples));
  }
  return kExitOk;
}

}  // namespace

void add_top(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<TopArguments>();
  CLI::App* command =
      app.add_subcommand("top", "Show the activity of the regions of running processes");
  command->add_option("STORE", arguments->store, "Only regions of this store (default: of all)");
  command->add_option("--pid", arguments->process, "Only regions of this process")
      ->type_name("PID");
  command
      ->add_option("--interval", arguments->interval_seconds,
                   "Seconds between two tables (default: 1)")
      ->type_name("SECONDS");
  command->add_flag("--once", arguments->once, "End after one table, also on a terminal");
  command->add_flag("--metrics", arguments->metrics, "Print OpenMetrics text, and end");
  command->callback([&context, arguments] {
    context.action = [&context, arguments] { return run_top(context, *arguments); };
  });
}

}  // namespace vellum::cli
