// cli/commands/cmd_branch.cpp: vellum branch: creates, renames or lists branches.
#include <memory>
#include <optional>

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "cli/names/listing.hpp"
#include "cli/options/encoding_arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {
namespace {

struct BranchArguments {
  std::string store;
  std::optional<std::string> name;
  std::string from = "main";
  std::optional<std::string> new_name;
  EncodingArguments encoding;
  bool names_only = false;
  std::vector<std::string> signers;  // files
  bool any_signer = false;
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

int rename_branch(Context& context, const BranchArguments& arguments) {
  if (!arguments.name) fail(Errc::invalid_argument, "--rename needs NAME, the branch to rename");
  if (arguments.encoding.any()) {
    fail(Errc::invalid_argument, "--rename excludes encoding options: they are for a new branch");
  }
  Store store = Store::open(arguments.store);
  store.rename_branch(*arguments.name, *arguments.new_name);
  context.report(
      Json{{"store", store.path()}, {"name", *arguments.new_name}, {"renamed", *arguments.name}},
      fmt::format("branch '{}' is '{}' now", *arguments.name, *arguments.new_name));
  return kExitOk;
}

int set_policy(Context& context, const BranchArguments& arguments) {
  if (!arguments.name)
    fail(Errc::invalid_argument, "--only-signed and --any-signer need NAME, a branch");
  std::vector<PublicKey> keys;
  for (const std::string& file : arguments.signers) keys.push_back(read_public_key(file));
  Store store = Store::open(arguments.store);
  store.set_signers(*arguments.name, keys);
  Json list = Json::array();
  for (const PublicKey& key : keys) list.push_back(base::hex(key));
  context.report(
      Json{{"store", store.path()}, {"name", *arguments.name}, {"signers", std::move(list)}},
      keys.empty() ? fmt::format("snapshots of branch '{}' need no signature", *arguments.name)
                   : fmt::format("snapshots of branch '{}' need a signature by {}", *arguments.name,
                                 counted(keys.size(), "key")));
  return kExitOk;
}

int run_branch(Context& context, const BranchArguments& arguments) {
  if (!arguments.signers.empty() || arguments.any_signer) return set_policy(context, arguments);
  if (arguments.new_name) return rename_branch(context, arguments);
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
      app, context, "branch", "Create or rename a branch; without a name, list branches",
      arguments->store, [&context, arguments] { return run_branch(context, *arguments); });
  command->add_option("NAME", arguments->name, "The new branch's name");
  CLI::Option* from = command->add_option(
      "FROM", arguments->from,
      "The version to start from: a branch (its head) or a snapshot (default: main)");
  CLI::Option* rename =
      command->add_option("--rename", arguments->new_name, "Give branch NAME this name instead")
          ->type_name("NEW")
          ->excludes(from);
  add_encoding_options(*command, arguments->encoding);
  CLI::Option* signers =
      command
          ->add_option("--only-signed", arguments->signers,
                       "Refuse snapshots of branch NAME that no key of these files has signed: "
                       "public keys of Ed25519")
          ->type_name("FILE")
          ->expected(1)
          ->take_all()
          ->excludes(from)
          ->excludes(rename);
  command
      ->add_flag("--any-signer", arguments->any_signer,
                 "Accept snapshots of branch NAME without a signature again")
      ->excludes(from)
      ->excludes(rename)
      ->excludes(signers);
  command->add_flag("--names", arguments->names_only, "List only names, one on each line")
      ->excludes(rename);
}

}  // namespace vellum::cli
