// cli/remote/cmd_pull.cpp: vellum pull and vellum clone: fetch versions from a remote.
#include <memory>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "cli/names/listing.hpp"
#include "cli/remote/remote_commands.hpp"
#include "cli/remote/transfer_arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "remote/holds.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/pull.hpp"

namespace vellum::cli {
namespace {

struct PullArguments {
  std::string store, url, directory;
  std::string remote = remote::kDefaultRemoteName;
  std::vector<std::string> names;
  std::string at, root;
  bool lazy = false, packs = false, release = false, take_over = false, dry_run = false;
  bool only_newer = false;
  TransferArguments transfer;
};

Json pull_json(const PullReport& report) {
  Json names = Json::array();
  for (const PulledVersion& name : report.versions) {
    names.push_back(Json{{"name", name.name},
                         {"kind", name.is_branch ? "branch" : "snapshot"},
                         {"was_there", name.was_there},
                         {"is_ahead", name.is_ahead},
                         {"is_older", name.is_older}});
  }
  return Json{{"versions", std::move(names)},
              {"pieces_read", report.pieces_read},
              {"bytes_read", report.bytes_read}};
}

std::string pull_sentence(const PullReport& report, bool dry_run) {
  std::size_t got = 0, ahead = 0;
  for (const PulledVersion& name : report.versions) {
    got += name.was_there || name.is_ahead ? 0 : 1;
    ahead += name.is_ahead ? 1 : 0;
  }
  std::string text =
      fmt::format("{} {} ({} of {})", dry_run ? "would get" : "got", counted(got, "version"),
                  human_bytes(report.bytes_read), counted(report.pieces_read, "piece"));
  if (ahead != 0) text += fmt::format("; {} with local commits that the remote lacks", ahead);
  for (const PulledVersion& name : report.versions) {
    if (!name.is_older) continue;
    text += fmt::format(
        "; '{}' is not changed: the remote has an older commit than before, as after a restore. "
        "push "
        "sends the missing commits, pull --take-over drops them locally",
        printable(name.name));
  }
  return text;
}

// What becomes of the hold of a clone that has all packs.
Json hold_json(const remote::Session& session, const PullArguments& arguments) {
  if (!arguments.packs) return Json::object();
  const auto names = arguments.release ? remote::release_holds(session) : remote::holds_of(session);
  return Json{{arguments.release ? "released" : "holds", names}};
}

std::string hold_sentence(const Json& holds) {
  if (holds.contains("released")) {
    return holds["released"].empty()
               ? "; it has no hold at the remote for this place: `vellum stat URL` lists the others"
               : "; its hold at the remote is released";
  }
  if (holds.empty() || holds["holds"].empty()) return "";
  return fmt::format(
      "; hold {} stays at the remote, for copies of this store: `vellum pull --packs --release` "
      "removes it",
      holds["holds"][0].get<std::string>());
}

int run_pull(Context& context, const PullArguments& arguments) {
  const auto store = remote::open_store_with_remotes(base::posix_fs(), arguments.store);
  remote::Session session(
      *store, arguments.remote,
      arguments.transfer.open(remote::read_remote_file(*store, arguments.remote).url));
  ProgressMeter meter("pull", context.progress_wanted());
  const PullOptions options{.versions = arguments.names,
                            .packs = arguments.packs,
                            .take_over = arguments.take_over,
                            .dry_run = arguments.dry_run,
                            .only_newer = arguments.only_newer,
                            .expect_root = arguments.root};
  const WarnAtEnd warns{session.warnings()};
  const auto report = remote::pull(session, options, meter.callback());
  Json object{
      {"store", store->path()}, {"remote", arguments.remote}, {"dry_run", arguments.dry_run}};
  object.update(pull_json(report));
  const std::string fetched = pull_sentence(report, arguments.dry_run);
  try {
    const Json holds = hold_json(session, arguments);
    object.update(holds);
    context.report(object, fetched + hold_sentence(holds));
  } catch (const Error&) {  // of the hold: what was fetched stays
    if (context.json) {
      context.begin_object(object);
    } else {
      context.report(object, fetched);
    }
    throw;
  }
  return kExitOk;
}

// "@{TIME}" denotes the newest snapshot of that time.
std::vector<std::string> names_at(const remote::CloneSource& source,
                                  std::vector<std::string> names) {
  for (std::string& name : names) {
    if (!name.starts_with("@{") || !name.ends_with('}')) continue;
    const remote::Remote there(*source.objects, source.remote.seal);
    name = newest_at(versions_of(there.newest_head().head),
                     std::string_view(name).substr(2, name.size() - 3), "", Newest::by_time);
  }
  return names;
}

int run_clone(Context& context, const PullArguments& arguments) {
  ProgressMeter meter("clone", context.progress_wanted());
  const std::string url = url_at_time(arguments.url, arguments.at);
  base::require_free(base::posix_fs(), base::without_end_slashes(arguments.directory));
  PullReport report;
  read_with_advice(url, [&] {
    const auto source =
        remote::open_clone_source(base::posix_fs(), url, arguments.transfer.open(url));
    report = remote::clone(base::posix_fs(), source, arguments.directory,
                           {names_at(source, arguments.names), arguments.lazy, arguments.root},
                           meter.callback());
  });
  warn(report.warnings);
  Json object{{"url", url}, {"store", arguments.directory}, {"lazy", arguments.lazy}};
  object.update(pull_json(report));
  context.report(object, "made " + arguments.directory + ": " + pull_sentence(report, false) +
                             (arguments.lazy ? "; their packs remain at the remote" : ""));
  return kExitOk;
}

void add_expect_option(CLI::App& command, std::string& root) {
  command
      .add_option("--expect", root,
                  "Refuse a remote without a snapshot of this root, by its content")
      ->type_name("ROOT")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const bool good = text.size() == 64 &&
                              text.find_first_not_of("0123456789abcdef") == std::string::npos;
            return good ? "" : "it has 64 hexadecimal digits";
          },
          "", "root"));
}

}  // namespace

void add_pull(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<PullArguments>();
  CLI::App* command =
      add_command(app, context, "pull", "Fetch versions from a remote", arguments->store,
                  [&context, arguments] { return run_pull(context, *arguments); });
  command->add_option("VERSION", arguments->names,
                      "The snapshots and branches to fetch (default: all)");
  command->add_option("--remote", arguments->remote, "The remote's name (default: origin)")
      ->type_name("NAME");
  command->add_flag("--packs", arguments->packs,
                    "Also fetch all packs that a lazy clone left at the remote");
  command->add_flag("--take-over", arguments->take_over,
                    "Also replace branches with commits that the remote's version lacks");
  CLI::Option* packs = command->get_option("--packs");
  command
      ->add_flag("--release", arguments->release,
                 "Also remove the hold at the remote: pull in lazy copies of this store first")
      ->needs(packs);
  command->add_flag("--dry-run", arguments->dry_run, "Only report what would be fetched")
      ->excludes(packs);
  command->add_flag(
      "--only-newer", arguments->only_newer,
      "Refuse a remote that shows an older or another head than an earlier pull has seen");
  add_expect_option(*command, arguments->root);
  add_transfer_options(*command, arguments->transfer);
}

void add_clone(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<PullArguments>();
  CLI::App* command = app.add_subcommand("clone", "Create a store from a remote");
  command->add_option("URL", arguments->url, "The remote: s3://bucket/prefix or file:///path")
      ->required();
  command->add_option("DIR", arguments->directory, "The new store's directory")->required();
  command->add_option("VERSION", arguments->names,
                      "The snapshots and branches to fetch, or @{TIME} (default: all)");
  CLI::Option* at = command
                        ->add_option("--at", arguments->at,
                                     "Of a bucket with versions: the remote as it was at this time")
                        ->type_name("TIME");
  command
      ->add_flag("--lazy", arguments->lazy,
                 "Leave the packs at the remote, and fetch pages when they are read")
      ->excludes(at);
  add_expect_option(*command, arguments->root);
  command->get_option("--expect")->excludes(command->get_option("--lazy"));
  add_transfer_options(*command, arguments->transfer);
  command->callback([&context, arguments] {
    context.action = [&context, arguments] { return run_clone(context, *arguments); };
  });
}

}  // namespace vellum::cli
