// cli/commands/cmd_branch.cpp: vellum branch: creates a branch, or lists branches.
#include <memory>
#include <optional>

#include "base/fail.hpp"
#include "cli/names/listing.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/encoding_arguments.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {
namespace {

struct BranchArguments {
  std::string store;
  std::optional<std::string> name;
  std::string from = "main";
  EncodingArguments encoding;
  bool names_only = false;
};

int make_branch(Context& context, BranchArguments arguments) {
  Store store = Store::open(arguments.store);
  arguments.from = resolve_version(store, arguments.from);
  std::optional<Encoding> encoding;
  if (arguments.encoding.any()) {
    encoding = arguments.encoding.on(
        store.version(arguments.from).encoding.value_or(store.options().encoding));
  }
  store.create_branch(*arguments.name, arguments.from, encoding);
  Json object = version_json(store.version(*arguments.name));
  object["store"] = store.path();
  object["from"] = arguments.from;
  context.report(object,
                 fmt::format("created branch '{}' from '{}'", *arguments.name, arguments.from));
  return kExitOk;
}

int run_branch(Context& context, const BranchArguments& arguments) {
  if (arguments.name) {
    return make_branch(context, arguments);
  }
  if (arguments.encoding.any()) {
    fail(Errc::invalid_argument, "encoding options need NAME: they are for a new branch");
  }
  list_kind(context, arguments.store, true, arguments.names_only);
  return kExitOk;
}

}  // namespace

void add_branch(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<BranchArguments>();
  CLI::App* command = add_command(
      app, context, "branch", "Create a branch; without a name, list branches", arguments->store,
      [&context, arguments] { return run_branch(context, *arguments); });
  command->add_option("NAME", arguments->name, "The new branch's name");
  command->add_option(
      "FROM", arguments->from,
      "The version to start from: a branch (its head) or a snapshot (default: main)");
  add_encoding_options(*command, arguments->encoding);
  command->add_flag("--names", arguments->names_only, "List only names, one on each line");
}

}  // namespace vellum::cli
