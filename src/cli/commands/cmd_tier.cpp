// cli/commands/cmd_tier.cpp: vellum tier: further directories for a store's packs, and their
// contents.
#include <memory>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "cli/options/arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "cli/terminal/table.hpp"

namespace vellum::cli {
namespace {

struct TierArguments {
  std::string store;
  std::string kind;  // archive or cache; for a move: archive or home
  std::string directory;
  std::string bytes, home_bytes;  // sizes; empty: not given
  bool bring_home = false;
  TierMove move;
};

const char* tier_kind_name(Tier::Kind kind) {
  switch (kind) {
    case Tier::Kind::home:
      return "home";
    case Tier::Kind::archive:
      return "archive";
    case Tier::Kind::cache:
      return "cache";
  }
  return "";
}

Json tier_json(const Tier& tier) {
  return Json{
      {"kind", tier_kind_name(tier.kind)}, {"directory", tier.directory}, {"present", tier.present},
      {"writable", tier.writable},         {"packs", tier.packs},         {"bytes", tier.bytes},
      {"limit_bytes", tier.limit_bytes}};
}

int run_list(Context& context, const TierArguments& arguments) {
  const Store store = Store::open(arguments.store);
  const auto tiers = store.tiers();
  if (context.json) {
    Json list = Json::array();
    for (const Tier& tier : tiers) list.push_back(tier_json(tier));
    context.out.print_json(Json{{"store", store.path()}, {"tiers", std::move(list)}});
    return kExitOk;
  }
  using Align = Table::Align;
  Table table({{"tier", Align::left},
               {"packs", Align::right},
               {"bytes", Align::right},
               {"limit", Align::right},
               {"directory", Align::left}});
  for (const Tier& tier : tiers) {
    const std::string note =
        tier.present && !tier.writable ? " (of another copy of the store)" : "";
    table.add({tier_kind_name(tier.kind), tier.present ? std::to_string(tier.packs) : "absent",
               tier.present ? human_bytes(tier.bytes) : "",
               tier.limit_bytes == 0 ? "none" : human_bytes(tier.limit_bytes),
               printable(tier.directory) + note});
  }
  table.print(context.out);
  return kExitOk;
}

int run_add(Context& context, const TierArguments& arguments) {
  Store store = Store::open(arguments.store);
  if (arguments.kind == "archive") {
    if (!arguments.bytes.empty()) {
      fail(Errc::invalid_argument, "--bytes: an archive has no limit");
    }
    store.add_archive(arguments.directory);
  } else {
    const auto limit = arguments.bytes.empty() ? 0 : parse_size("--bytes", arguments.bytes);
    store.add_cache(arguments.directory, limit);
  }
  context.report(
      Json{{"store", store.path()}, {"kind", arguments.kind}, {"directory", arguments.directory}},
      fmt::format("added {} {}", arguments.kind, arguments.directory));
  return kExitOk;
}

Json report_json(const Store& store, const TierReport& report, bool dry_run) {
  return Json{{"store", store.path()},
              {"dry_run", dry_run},
              {"packs_moved", report.packs_moved},
              {"moved_bytes", report.moved_bytes},
              {"packs_in_use", report.packs_in_use},
              {"copies_made", report.copies_made},
              {"copied_bytes", report.copied_bytes},
              {"copies_removed", report.copies_removed},
              {"home_bytes", report.home_bytes}};
}

std::string readers(const Store& store) {
  std::string out;
  for (const Tier& tier : store.tiers()) out += base::lock_holders_in(tier.directory);
  return out;
}

std::string moved_sentence(const Store& store, const TierReport& report, bool dry_run) {
  std::string text =
      fmt::format("{}move{} {} of {}", dry_run ? "would " : "", dry_run ? "" : "d",
                  counted(report.packs_moved, "pack"), human_bytes(report.moved_bytes));
  if (report.packs_in_use != 0) {
    text +=
        fmt::format(", did not move {} because {} in use{}", counted(report.packs_in_use, "pack"),
                    report.packs_in_use == 1 ? "it is" : "they are", readers(store));
  }
  return text + fmt::format("; packs at home take {}", human_bytes(report.home_bytes));
}

int run_remove(Context& context, const TierArguments& arguments) {
  Store store = Store::open(arguments.store);
  if (arguments.bring_home) {
    ProgressMeter meter("tier", context.progress_wanted());
    TierMove home;
    home.to_archive = false;
    const TierReport report = store.move_packs(home, meter.callback());
    if (report.packs_in_use != 0) {
      fail(Errc::busy, "{}: close the versions that are open",
           moved_sentence(store, report, false));
    }
  }
  store.remove_tier(arguments.directory);
  context.report(Json{{"store", store.path()}, {"directory", arguments.directory}},
                 "removed tier " + arguments.directory);
  return kExitOk;
}

int run_limit(Context& context, const TierArguments& arguments) {
  Store store = Store::open(arguments.store);
  const std::uint64_t limit = arguments.bytes == "none" ? 0 : parse_size("SIZE", arguments.bytes);
  const bool home = arguments.directory == "home";
  store.limit_tier(home ? "" : arguments.directory, limit);
  context.report(
      Json{{"store", store.path()}, {"directory", arguments.directory}, {"limit_bytes", limit}},
      fmt::format("{}: {}", arguments.directory,
                  limit == 0 ? "no limit" : "at most " + human_bytes(limit)));
  return kExitOk;
}

int run_move(Context& context, const TierArguments& arguments) {
  TierMove move = arguments.move;
  move.to_archive = arguments.kind == "archive";
  if (!arguments.home_bytes.empty()) {
    move.home_bytes = parse_size("--home-bytes", arguments.home_bytes);
  }
  if (!move.to_archive && move.keep_last != 0) {
    fail(Errc::invalid_argument, "--keep-last: works only with a move to the archive");
  }
  Store store = Store::open(arguments.store);
  ProgressMeter meter("tier", context.progress_wanted());
  const TierReport report = store.move_packs(move, meter.callback());
  context.report(report_json(store, report, move.dry_run),
                 moved_sentence(store, report, move.dry_run));
  return kExitOk;
}

int run_apply(Context& context, const TierArguments& arguments) {
  const bool dry_run = arguments.move.dry_run;
  Store store = Store::open(arguments.store);
  ProgressMeter meter("tier", context.progress_wanted());
  const TierReport report = store.apply_tiers({dry_run}, meter.callback());
  context.report(report_json(store, report, dry_run),
                 fmt::format("{}; {}cop{} {} of {} to caches, {}remove{} {} there",
                             moved_sentence(store, report, dry_run), dry_run ? "would " : "",
                             dry_run ? "y" : "ied", counted(report.copies_made, "pack"),
                             human_bytes(report.copied_bytes), dry_run ? "would " : "",
                             dry_run ? "" : "d", report.copies_removed));
  return kExitOk;
}

// Adds a command of `vellum tier`.
CLI::App* add_subcommand_of_tier(CLI::App& app, Context& context, const char* name,
                                 const char* description,
                                 const std::shared_ptr<TierArguments>& arguments,
                                 int (*run)(Context&, const TierArguments&)) {
  return add_command(app, context, name, description, arguments->store,
                     [&context, arguments, run] { return run(context, *arguments); });
}

}  // namespace

void add_tier(CLI::App& app, Context& context) {
  CLI::App& tier =
      *app.add_subcommand("tier", "Keep packs, or copies of them, in other directories");
  tier.require_subcommand(1);
  auto arguments = std::make_shared<TierArguments>();
  add_subcommand_of_tier(tier, context, "list", "List tiers and their content", arguments,
                         run_list);
  CLI::App* command = add_subcommand_of_tier(
      tier, context, "add", "Add a directory, also one that was moved", arguments, run_add);
  command->add_option("KIND", arguments->kind, "archive or cache")
      ->required()
      ->check(CLI::IsMember({"archive", "cache"}));
  command->add_option("DIR", arguments->directory, "The directory's path")->required();
  command->add_option("--bytes", arguments->bytes, "The space that copies in a cache may take")
      ->type_name("SIZE");
  command = add_subcommand_of_tier(tier, context, "remove", "Stop using a directory", arguments,
                                   run_remove);
  command->add_option("DIR", arguments->directory, "The directory's path")->required();
  command->add_flag("--bring-home", arguments->bring_home, "Move all archived packs home first");
  command = add_subcommand_of_tier(tier, context, "limit", "Set the space that a tier may take",
                                   arguments, run_limit);
  command->add_option("TIER", arguments->directory, "home, or a cache's path")->required();
  command->add_option("SIZE", arguments->bytes, "The limit, or none")->required();
  command = add_subcommand_of_tier(tier, context, "move", "Move packs now", arguments, run_move);
  command->add_option("TO", arguments->kind, "archive or home")
      ->required()
      ->check(CLI::IsMember({"archive", "home"}));
  command
      ->add_option("--home-bytes", arguments->home_bytes, "Stop at this size of the packs at home")
      ->type_name("SIZE");
  command
      ->add_option("--keep-last", arguments->move.keep_last,
                   "Keep packs at home that heads and the newest N snapshots need")
      ->type_name("N");
  command->add_flag("--dry-run", arguments->move.dry_run,
                    "Only report the packs that would be moved");
  command = add_subcommand_of_tier(
      tier, context, "apply", "Move and copy packs to enforce the limits", arguments, run_apply);
  command->add_flag("--dry-run", arguments->move.dry_run, "Only report the moves and copies");
}

}  // namespace vellum::cli
