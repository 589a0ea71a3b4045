// cli/commands/cmd_key.cpp: vellum key: the secrets that open an encrypted store.
#include <memory>
#include <optional>

#include "base/fail.hpp"
#include "cli/options/key_arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/table.hpp"
#include "remote/engine/url.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/session/remote_keys.hpp"
#include "remote/session/session.hpp"
#include "vellum/store.hpp"

namespace vellum::cli {
namespace {

struct KeyArguments {
  std::string store, remote;
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

// The remote that is encrypted by objects whose slots are meant.
struct SlotsThere {
  std::shared_ptr<store::StoreDirectory> store;  // null: a remote that was given by its URL
  remote::RemoteKeySlots slots;
  std::string place;
};

SlotsThere slots_of_remote(const std::string& path, const std::string& name) {
  auto store = remote::open_store_with_remotes(base::posix_fs(), path);
  const remote::RemoteFile file = remote::read_remote_file(*store, name);
  if (!file.objects_key.has_value()) {
    fail(Errc::unsupported, "{}: remote '{}' has no keys of its own", store->path(), name);
  }
  const auto objects =
      remote::opened_objects(*store, file, remote::open_object_store(base::posix_fs(), file.url),
                             remote::SlotsFrom::remote);
  remote::RemoteKeySlots slots(objects);
  return {std::move(store), std::move(slots), file.url};
}

// Nullopt: the slots of a store, or of the remote of an encrypted store.
std::optional<SlotsThere> slots_there(const KeyArguments& arguments) {
  const std::string& store = arguments.store;
  if (!arguments.remote.empty()) return slots_of_remote(store, arguments.remote);
  if (!remote::is_remote_url(store)) return std::nullopt;
  const std::shared_ptr<remote::ObjectStore> objects =
      remote::open_object_store(base::posix_fs(), store);
  if (!remote::read_superblock(*objects).objects_key.has_value()) return std::nullopt;
  remote::RemoteKeySlots slots(objects);
  return SlotsThere{nullptr, std::move(slots), store};
}

// The store's copy follows.
void note_slots(const KeyArguments& arguments, const SlotsThere& there) {
  if (there.store == nullptr) return;
  try {
    remote::Session(*there.store, arguments.remote, there.slots.opened())
        .note_key_slots(there.slots.bytes());
  } catch (const Error& e) {
    warn(
        {fmt::format("the key slots at {} are changed, but not the store's copy of them, which "
                     "the next push or pull takes: {}",
                     there.place, e.what())});
  }
}

int print_slots(Context& context, const std::string& place, const std::string& fingerprint,
                const std::vector<KeySlot>& slots) {
  if (context.json) {
    Json list = Json::array();
    for (const KeySlot& slot : slots) list.push_back(slot_json(slot));
    context.out.print_json(
        Json{{"store", place}, {"fingerprint", fingerprint}, {"keys", std::move(list)}});
    return kExitOk;
  }
  context.out.print("fingerprint of the key: {}\n", fingerprint);
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

int run_key_list(Context& context, const KeyArguments& arguments) {
  if (const auto there = slots_there(arguments)) {
    return print_slots(context, there->place, there->slots.fingerprint(), there->slots.list());
  }
  const Store store = Store::open(arguments.store);
  return print_slots(context, store.path(), store.key_fingerprint(), store.keys());
}

// The key slots of the remote of an encrypted store follow that store.
Store open_to_change(const std::string& store) {
  if (remote::is_remote_url(store)) {
    fail(Errc::read_only,
         "{}: the key slots of a remote follow those of its store: change these, and push", store);
  }
  return Store::open(store);
}

// Changes the slots of a remote by the first function, or those of a store by the second. Returns
// what was changed, and its place.
template <typename AtRemote, typename InStore>
std::pair<std::string, KeySlot> change(const KeyArguments& arguments, const AtRemote& at_remote,
                                       const InStore& in_store) {
  if (auto there = slots_there(arguments)) {
    const KeySlot slot = at_remote(there->slots);
    note_slots(arguments, *there);
    return {there->place, slot};
  }
  Store store = open_to_change(arguments.store);
  const KeySlot slot = in_store(store);
  return {store.path(), slot};
}

int run_key_add(Context& context, const KeyArguments& arguments) {
  const auto add = [&] { return new_key(arguments.secret); };
  const auto [place, slot] = change(
      arguments, [&](remote::RemoteKeySlots& slots) { return slots.add(add(), arguments.label); },
      [&](Store& store) { return store.add_key(add(), arguments.label); });
  context.report(Json{{"store", place}, {"key", slot_json(slot)}},
                 fmt::format("added key slot {} ({})", slot.number, key_kind_name(slot.kind)));
  return kExitOk;
}

int run_key_remove(Context& context, const KeyArguments& arguments) {
  const auto [place, none] = change(
      arguments,
      [&](remote::RemoteKeySlots& slots) { return slots.remove(arguments.slot), KeySlot(); },
      [&](Store& store) { return store.remove_key(arguments.slot), KeySlot(); });
  context.report(Json{{"store", place}, {"slot", arguments.slot}},
                 fmt::format("removed key slot {}", arguments.slot));
  return kExitOk;
}

int run_key_rotate(Context& context, const KeyArguments& arguments) {
  const auto secret = [&] { return new_key(arguments.secret); };
  const auto [place, slot] = change(
      arguments,
      [&](remote::RemoteKeySlots& slots) { return slots.replace(arguments.slot, secret()); },
      [&](Store& store) { return store.replace_key(arguments.slot, secret()); });
  context.report(Json{{"store", place}, {"key", slot_json(slot)}},
                 fmt::format("key slot {} replaces slot {}", slot.number, arguments.slot));
  return kExitOk;
}

CLI::App* add_subcommand_of_key(CLI::App& key, Context& context, const char* name,
                                const char* description,
                                const std::shared_ptr<KeyArguments>& arguments,
                                int (*run)(Context&, const KeyArguments&)) {
  CLI::App* const command =
      add_command(key, context, name, description, arguments->store,
                  [&context, arguments, run] { return run(context, *arguments); });
  command
      ->add_option("--remote", arguments->remote,
                   "Those of the store's remote of this name, which is encrypted by itself")
      ->type_name("NAME");
  return command;
}

void add_slot_argument(CLI::App& command, KeyArguments& arguments) {
  command.add_option("SLOT", arguments.slot, "The number of a key slot")->required();
}

}  // namespace

void add_key(CLI::App& app, Context& context) {
  CLI::App& key =
      *app.add_subcommand("key", "Change the secrets that open an encrypted store or remote");
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
