// cli/commands/group/cmd_group.cpp: vellum group: versions of a parallel job, which span many
// stores.
#include "cli/commands/group/cmd_group.hpp"

namespace vellum::cli {
namespace {

using RunGroupCommand = int (*)(Context&, const GroupArguments&);

struct GroupCommand {
  const char* name;
  const char* description;
  RunGroupCommand run;
  const char* records = "RECORD_DIR";
  const char* records_description = "The directory of the group's records";
};

// Adds a command of `vellum group`.
CLI::App* add_group_command(CLI::App& app, Context& context, const GroupCommand& added,
                            const std::shared_ptr<GroupArguments>& arguments) {
  CLI::App* command = app.add_subcommand(added.name, added.description);
  command->add_option(added.records, arguments->records, added.records_description)->required();
  command->callback([&context, arguments, run = added.run] {
    context.action = [&context, arguments, run] { return run(context, *arguments); };
  });
  return command;
}

// Adds one that only reads.
CLI::App* add_read_command(CLI::App& app, Context& context, GroupCommand added,
                           const std::shared_ptr<GroupArguments>& arguments) {
  added.records = "RECORDS";
  added.records_description = "The directory of the group's records, or the URL of its remote";
  return add_group_command(app, context, added, arguments);
}

void add_stores(CLI::App& command, const std::shared_ptr<GroupArguments>& arguments) {
  command
      .add_option("--stores", arguments->stores,
                  "New location of the stores: a path in which {} is the partition's number")
      ->type_name("PATH");
}

}  // namespace

void add_group(CLI::App& app, Context& context) {
  CLI::App& group =
      *app.add_subcommand("group", "Manage the versions of a parallel job, which span many stores");
  group.require_subcommand(1);
  auto arguments = std::make_shared<GroupArguments>();
  add_read_command(group, context, {"log", "List the versions, newest first", run_group_log},
                   arguments);

  CLI::App* command = add_read_command(
      group, context, {"show", "Describe a version and its partitions", run_group_show}, arguments);
  command->add_option("VERSION", arguments->version, "A name or a number (default: the newest)");
  add_stores(*command, arguments);

  command = add_read_command(
      group, context,
      {"verify", "Check for missing and damaged parts of partitions", run_group_verify}, arguments);
  command->add_flag("--read-data", arguments->read_data, "Read and check every byte of the stores");
  add_stores(*command, arguments);

  command = add_read_command(
      group, context,
      {"export", "Write the partitions of a version as plain files", run_group_export}, arguments);
  command->add_option("VERSION", arguments->version, "A name or a number")->required();
  command
      ->add_option("DIR", arguments->to, "The directory for partition-0 and so on; it is created")
      ->required();
  add_stores(*command, arguments);

  command = add_group_command(
      group, context,
      {"restore", "Fetch a version, and lost stores, from a remote", run_group_restore}, arguments);
  command
      ->add_option("URL", arguments->url, "The group's remote: s3://bucket/prefix or file:///path")
      ->required();
  command->add_option("VERSION", arguments->version,
                      "A name or a number (default: the newest that is complete there)");
  add_stores(*command, arguments);

  command = add_group_command(group, context, {"rm", "Remove a version by its name", run_group_rm},
                              arguments);
  command->add_option("VERSION", arguments->version, "A name")->required();

  command = add_group_command(
      group, context, {"gc", "Free the space that no version needs", run_group_gc}, arguments);
  command->add_flag("--dry-run", arguments->dry_run,
                    "Only report the versions that would be removed");
  add_stores(*command, arguments);
}

}  // namespace vellum::cli
