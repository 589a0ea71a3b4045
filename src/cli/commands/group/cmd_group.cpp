// cli/commands/group/cmd_group.cpp: vellum group: versions of a parallel job, which span many
// stores.
#include "cli/commands/group/cmd_group.hpp"

namespace vellum::cli {
namespace {

using Run = int (*)(Context&, const GroupArguments&);

// Adds a command of `vellum group`.
CLI::App* add_work(CLI::App& app, Context& context, const char* name, const char* description,
                   const std::shared_ptr<GroupArguments>& arguments, Run run,
                   const char* records = "RECORD_DIR",
                   const char* what = "The directory of the group's records") {
  CLI::App* command = app.add_subcommand(name, description);
  command->add_option(records, arguments->records, what)->required();
  command->callback([&context, arguments, run] {
    context.action = [&context, arguments, run] { return run(context, *arguments); };
  });
  return command;
}

// Adds one that only reads.
CLI::App* add_look(CLI::App& app, Context& context, const char* name, const char* description,
                   const std::shared_ptr<GroupArguments>& arguments, Run run) {
  return add_work(app, context, name, description, arguments, run, "RECORDS",
                  "The directory of the group's records, or the URL of its remote");
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
  add_look(group, context, "log", "List the versions, newest first", arguments, run_group_log);

  CLI::App* command = add_look(group, context, "show", "Describe a version and its partitions",
                               arguments, run_group_show);
  command->add_option("VERSION", arguments->version, "A name or a number (default: the newest)");
  add_stores(*command, arguments);

  command = add_look(group, context, "verify", "Check for missing and damaged parts of partitions",
                     arguments, run_group_verify);
  command->add_flag("--read-data", arguments->read_data, "Read and check every byte of the stores");
  add_stores(*command, arguments);

  command = add_look(group, context, "export", "Write the partitions of a version as plain files",
                     arguments, run_group_export);
  command->add_option("VERSION", arguments->version, "A name or a number")->required();
  command
      ->add_option("DIR", arguments->to, "The directory for partition-0 and so on; it is created")
      ->required();
  add_stores(*command, arguments);

  command = add_work(group, context, "restore", "Fetch a version, and lost stores, from a remote",
                     arguments, run_group_restore);
  command
      ->add_option("URL", arguments->url, "The group's remote: s3://bucket/prefix or file:///path")
      ->required();
  command->add_option("VERSION", arguments->version,
                      "A name or a number (default: the newest that is complete there)");
  add_stores(*command, arguments);

  command = add_work(group, context, "rm", "Remove a version by its name", arguments, run_group_rm);
  command->add_option("VERSION", arguments->version, "A name")->required();

  command = add_work(group, context, "gc", "Free the space that no version needs", arguments,
                     run_group_gc);
  command->add_flag("--dry-run", arguments->dry_run,
                    "Only report the versions that would be removed");
  add_stores(*command, arguments);
}

}  // namespace vellum::cli
