// cli/top/cmd_top.cpp: vellum top: the activity of the regions of running processes.
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "base/fail.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/top/open_metrics.hpp"
#include "cli/top/sample.hpp"
#include "cli/top/view.hpp"

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
