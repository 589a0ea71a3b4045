// cli/commands/cmd_key.cpp: vellum key: the secrets that open an encrypted store.
#include <memory>

#include "base/fail.hpp"
#include "cli/options/key_arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/table.hpp"
#include "remote/engine/url.hpp"
#include "vellum/store.hpp"

namespace vellum::cli {
namespace {

struct KeyArguments {
  std::string store;
  std::uint32_t slot = 0;
  std::string label;
  KeySource secret;
};

const char* key_kind_name(KeySlot::Kind kind) {
  switch (kind) {
    case KeySlot::Kind::passphrase:
      return "passphrase";
    case KeySlot::Kind::key_file:
      return "key-file";
    case KeySlot::Kind::recipient:
      return "recipient";
    case KeySlot::Kind::command:
      return "command";
  }
  return "";
}

Json slot_json(const KeySlot& slot) {
  return Json{{"slot", slot.number},
              {"kind", key_kind_name(slot.kind)},
              {"label", slot.label},
              {"recipient", slot.recipient}};
}

int run_key_list(Context& context, const KeyArguments& arguments) {
  const Store store = Store::open(arguments.store);
  const auto slots = store.keys();
  if (context.json) {
    Json list = Json::array();
    for (const KeySlot& slot : slots) list.push_back(slot_json(slot));
    context.out.print_json(Json{{"store", store.path()},
                                {"fingerprint", store.key_fingerprint()},
                                {"keys", std::move(list)}});
    return kExitOk;
  }
  context.out.print("fingerprint of the key: {}\n", store.key_fingerprint());
  using Align = Table::Align;
  Table table({{"slot", Align::right},
               {"kind", Align::left},
               {"label", Align::left},
               {"recipient", Align::left}});
  for (const KeySlot& slot : slots) {
    table.add({std::to_string(slot.number), key_kind_name(slot.kind), printable(slot.label),
               slot.recipient});
  }
  table.print(context.out);
  return kExitOk;
}

// The key slots of a remote follow its store.
Store open_to_change(const std::string& store) {
  if (remote::is_remote_url(store)) {
    fail(Errc::read_only,
         "{}: the key slots of a remote follow those of its store: change these, and push", store);
  }
  return Store::open(store);
}

int run_key_add(Context& context, const KeyArguments& arguments) {
  Store store = open_to_change(arguments.store);
  const KeySlot slot = store.add_key(new_key(arguments.secret), arguments.label);
  context.report(Json{{"store", store.path()}, {"key", slot_json(slot)}},
                 fmt::format("added key slot {} ({})", slot.number, key_kind_name(slot.kind)));
  return kExitOk;
}

int run_key_remove(Context& context, const KeyArguments& arguments) {
  Store store = open_to_change(arguments.store);
  store.remove_key(arguments.slot);
  context.report(Json{{"store", store.path()}, {"slot", arguments.slot}},
                 fmt::format("removed key slot {}", arguments.slot));
  return kExitOk;
}

int run_key_rotate(Context& context, const KeyArguments& arguments) {
  Store store = open_to_change(arguments.store);
  const KeySlot slot = store.replace_key(arguments.slot, new_key(arguments.secret));
  context.report(Json{{"store", store.path()}, {"key", slot_json(slot)}},
                 fmt::format("key slot {} replaces slot {}", slot.number, arguments.slot));
  return kExitOk;
}

CLI::App* add_subcommand_of_key(CLI::App& key, Context& context, const char* name,
                                const char* description,
                                const std::shared_ptr<KeyArguments>& arguments,
                                int (*run)(Context&, const KeyArguments&)) {
  return add_command(key, context, name, description, arguments->store,
                     [&context, arguments, run] { return run(context, *arguments); });
}

void add_slot_argument(CLI::App& command, KeyArguments& arguments) {
  command.add_option("SLOT", arguments.slot, "The number of a key slot")->required();
}

}  // namespace

void add_key(CLI::App& app, Context& context) {
  CLI::App& key = *app.add_subcommand("key", "Change the secrets that open an encrypted store");
  key.require_subcommand(1);
  auto arguments = std::make_shared<KeyArguments>();
  add_subcommand_of_key(key, context, "list", "List the key slots", arguments, run_key_list);
  CLI::App* command = add_subcommand_of_key(
      key, context, "add", "Add a secret that opens the store", arguments, run_key_add);
  add_new_key_options(*command, arguments->secret);
  command->add_option("--label", arguments->label, "A text for the list")->type_name("TEXT");
  command =
      add_subcommand_of_key(key, context, "remove", "Remove a key slot", arguments, run_key_remove);
  add_slot_argument(*command, *arguments);
  command = add_subcommand_of_key(key, context, "rotate", "Replace the secret of a key slot",
                                  arguments, run_key_rotate);
  add_slot_argument(*command, *arguments);
  add_new_key_options(*command, arguments->secret);
}

}  // namespace vellum::cli
