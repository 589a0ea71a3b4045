// cli/commands/cmd_gc.cpp: vellum gc: frees the space that no version needs.
#include <memory>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "base/parse_number.hpp"
#include "cli/remote/remote_commands.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "remote/engine/url.hpp"

namespace vellum::cli {
namespace {

struct GcArguments {
  std::string store;
  std::string recompress;  // the level; empty: no recompression
  GcOptions options;
};

int parse_level(const std::string& text) {
  constexpr int kMax = 19;
  const int level = base::parse_number<int>(text).value_or(0);
  if (level < 1 || level > kMax) {
    fail(Errc::invalid_argument, "--recompress: '{}' is not a level: give 1 to {}", printable(text),
         kMax);
  }
  return level;
}

Json report_json(const Store& store, const GcReport& report, bool dry_run) {
  return Json{{"store", store.path()},
              {"dry_run", dry_run},
              {"snapshots", report.snapshots},
              {"branches", report.branches},
              {"open_versions", report.open_versions},
              {"packs", report.packs},
              {"packs_removed", report.packs_removed},
              {"packs_punched", report.packs_punched},
              {"copies_removed", report.copies_removed},
              {"pack_bytes", report.pack_bytes},
              {"freeable_bytes", report.freeable_bytes},
              {"freed_bytes", report.freed_bytes},
              {"holes_supported", report.holes_supported},
              {"packs_recompressed", report.recompressed.packs},
              {"recompressed_from_bytes", report.recompressed.bytes_before},
              {"recompressed_to_bytes", report.recompressed.bytes_after},
              {"packs_in_use", report.recompressed.packs_in_use}};
}

std::string recompression_sentence(const Store& store, const GcReport& report, bool dry_run) {
  std::string text = fmt::format("; {}recompress{} {}", dry_run ? "would " : "",
                                 dry_run ? "" : "ed", counted(report.recompressed.packs, "pack"));
  if (report.recompressed.packs != 0) {
    text += fmt::format(": {} to {}{}", human_bytes(report.recompressed.bytes_before),
                        dry_run ? "about " : "", human_bytes(report.recompressed.bytes_after));
  }
  if (report.recompressed.packs_in_use != 0) {
    text += fmt::format(", {} skipped because {} in use{}",
                        counted(report.recompressed.packs_in_use, "pack"),
                        report.recompressed.packs_in_use == 1 ? "it is" : "they are",
                        base::lock_holders_in(store.path() + "/packs"));
  }
  return text;
}

std::string sentence(const GcReport& report, bool dry_run) {
  const std::string of = human_bytes(report.pack_bytes) + " in " + counted(report.packs, "pack");
  if (dry_run) {
    return fmt::format("would free {} of {}", human_bytes(report.freeable_bytes), of);
  }
  std::string text = fmt::format("freed {} of {}", human_bytes(report.freed_bytes), of);
  if (!report.holes_supported) {
    text += fmt::format(
        "; this file system has no holes: only whole packs were freed, of {} that no version needs",
        human_bytes(report.freeable_bytes));
  }
  return text;
}

// Why nothing is freed, for a store that is not empty.
std::string needed_by(const GcReport& report) {
  std::string text =
      fmt::format("all of it is needed by {} and {}", counted(report.snapshots, "snapshot"),
                  counted(report.branches, "branch"));
  if (report.open_versions != 0)
    text += fmt::format(", and by {}", counted(report.open_versions, "open version"));
  return text + "; vellum forget and vellum rm remove snapshots";
}

int run_gc(Context& context, const GcArguments& arguments) {
  GcOptions options = arguments.options;
  if (!arguments.recompress.empty()) options.recompress_level = parse_level(arguments.recompress);
  if (remote::is_remote_url(arguments.store)) {
    if (options.recompress_level != 0) {
      fail(Errc::invalid_argument, "--recompress: works on a store, not at a remote");
    }
    return gc_remote(context, arguments.store, options.dry_run);
  }
  Store store = Store::open(arguments.store);
  ProgressMeter meter("gc", context.progress_wanted());
  const GcReport report = store.collect_garbage(options, meter.callback());
  std::string text = sentence(report, options.dry_run);
  if (options.recompress_level != 0) text += recompression_sentence(store, report, options.dry_run);
  context.report(report_json(store, report, options.dry_run), text);
  if (report.freeable_bytes == 0 && report.pack_bytes != 0) context.explain(needed_by(report));
  return kExitOk;
}

}  // namespace

void add_gc(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<GcArguments>();
  CLI::App* command =
      add_command(app, context, "gc", "Free the space that no version needs", arguments->store,
                  [&context, arguments] { return run_gc(context, *arguments); });
  command->add_flag("--dry-run", arguments->options.dry_run,
                    "Only report the space that would be freed");
  // A flag with a value instead of an option, so that the store's path is not taken for the level.
  command->add_flag("--recompress{15}", arguments->recompress,
                    "Also rewrite packs, smaller, at this level of zstd (default: 15)");
}

}  // namespace vellum::cli
