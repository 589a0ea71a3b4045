// cli/cmd_gc.cpp: vellum gc: gives back the space of what no version needs.
#include <memory>

#include "cli/command.hpp"
#include "cli/exit_status.hpp"
#include "cli/progress.hpp"

namespace vellum::cli {
namespace {

struct GcArguments {
  std::string store;
  GcOptions options;
};

Json report_json(const Store& store, const GcReport& report, bool dry_run) {
  return Json{{"store", store.path()},
              {"dry_run", dry_run},
              {"snapshots", report.snapshots},
              {"branches", report.branches},
              {"open_versions", report.open_versions},
              {"packs", report.packs},
              {"packs_removed", report.packs_removed},
              {"packs_punched", report.packs_punched},
              {"pack_bytes", report.pack_bytes},
              {"freeable_bytes", report.freeable_bytes},
              {"freed_bytes", report.freed_bytes},
              {"holes_supported", report.holes_supported}};
}

std::string sentence(const GcReport& report, bool dry_run) {
  const std::string of = human_bytes(report.pack_bytes) + " in " + counted(report.packs, "pack");
  if (dry_run) {
    return fmt::format("would free {} of {}", human_bytes(report.freeable_bytes), of);
  }
  std::string text = fmt::format("freed {} of {}", human_bytes(report.freed_bytes), of);
  if (!report.holes_supported) {
    text += fmt::format(
        "\nthis file system has no holes: only whole packs could go, of {} that nothing needs",
        human_bytes(report.freeable_bytes));
  }
  return text;
}

int run_gc(Context& context, const GcArguments& arguments) {
  Store store = Store::open(arguments.store);
  ProgressMeter meter("gc", context.progress_wanted());
  const GcReport report = store.collect_garbage(arguments.options, meter.callback());
  const bool dry_run = arguments.options.dry_run;
  context.report(report_json(store, report, dry_run), sentence(report, dry_run));
  return kExitOk;
}

}  // namespace

void add_gc(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<GcArguments>();
  CLI::App* command =
      add_command(app, context, "gc", "Give back the space of what no version needs",
                  arguments->store, [&context, arguments] { return run_gc(context, *arguments); });
  command->add_flag("--dry-run", arguments->options.dry_run, "Only say what would be freed");
}

}  // namespace vellum::cli
