// cli/remote/cmd_push.cpp: vellum push: sends versions to a remote.
#include <memory>

#include "base/fail.hpp"
#include "cli/remote/transfer_arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/push.hpp"

namespace vellum::cli {
namespace {

struct PushArguments {
  std::string store;
  std::string remote = remote::kDefaultRemoteName;
  std::vector<std::string> names;
  bool all = false, take_over = false, dry_run = false;
  TransferArguments transfer;
};

Json push_json(const store::StoreDirectory& store, const PushArguments& arguments,
               const PushReport& report) {
  Json names = Json::array();
  for (const PushedVersion& name : report.versions) {
    names.push_back(Json{{"name", name.name},
                         {"kind", name.is_branch ? "branch" : "snapshot"},
                         {"was_there", name.was_there},
                         {"epoch", name.is_branch ? Json(name.epoch) : Json(nullptr)}});
  }
  return Json{{"store", store.path()},
              {"remote", arguments.remote},
              {"dry_run", arguments.dry_run},
              {"versions", std::move(names)},
              {"objects_uploaded", report.objects_uploaded},
              {"bytes_uploaded", report.bytes_uploaded},
              {"pieces_used_again", report.pieces_used_again}};
}

int run_push(Context& context, const PushArguments& arguments) {
  if (arguments.all == !arguments.names.empty()) {
    fail(Errc::invalid_argument, "give the versions to push, or --all");
  }
  const auto store = remote::open_store_with_remotes(base::posix_fs(), arguments.store);
  const PushOptions options{arguments.names, arguments.take_over, arguments.dry_run};
  remote::Session session(
      *store, arguments.remote,
      arguments.transfer.open(remote::read_remote_file(*store, arguments.remote).url));
  ProgressMeter meter("push", context.progress_wanted());
  const WarnAtEnd warns{session.warnings()};
  const PushReport report = remote::push(session, options, meter.callback());
  std::size_t pushed = 0;
  for (const PushedVersion& name : report.versions) pushed += name.was_there ? 0 : 1;
  context.report(
      push_json(*store, arguments, report),
      fmt::format("{} {} to '{}' ({} of {}); {} already there",
                  arguments.dry_run ? "would push" : "pushed", counted(pushed, "version"),
                  arguments.remote, human_bytes(report.bytes_uploaded),
                  counted(report.objects_uploaded, "object"), report.versions.size() - pushed));
  return kExitOk;
}

}  // namespace

void add_push(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<PushArguments>();
  CLI::App* command =
      add_command(app, context, "push", "Send versions to a remote", arguments->store,
                  [&context, arguments] { return run_push(context, *arguments); });
  command->add_option("VERSION", arguments->names, "The snapshots and branches to push");
  command->add_flag("--all", arguments->all, "Push every snapshot and branch");
  command->add_option("--remote", arguments->remote, "The remote's name (default: origin)")
      ->type_name("NAME");
  command->add_flag("--take-over", arguments->take_over,
                    "Also push branches that another store has pushed: its pushes are dropped");
  command->add_flag("--dry-run", arguments->dry_run, "Only report what would be sent");
  add_transfer_options(*command, arguments->transfer);
}

}  // namespace vellum::cli
