// cli/remote/cmd_remote.cpp: vellum remote: the remotes of a store.
#include <chrono>
#include <map>
#include <memory>

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "cli/options/key_arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/table.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/session/known_remotes.hpp"
#include "remote/session/missing_pieces.hpp"
#include "remote/session/session.hpp"

namespace vellum::cli {
namespace {

struct RemoteArguments {
  std::string store, name, url;
  bool one_writer = false;
  bool encrypt = false;
  std::string recipient;
  double lock_s = 0;
};

// "30d": the longest unit that divides it.
std::string duration_text(std::chrono::seconds duration) {
  constexpr std::pair<std::int64_t, char> kUnits[] = {{86'400, 'd'}, {3600, 'h'}, {60, 'm'}};
  for (const auto& [seconds, unit] : kUnits) {
    if (duration.count() % seconds == 0) {
      return fmt::format("{}{}", duration.count() / seconds, unit);
    }
  }
  return fmt::format("{}s", duration.count());
}

std::chrono::seconds lock_of(const remote::RemoteFile& file) {
  return file.lock.has_value() ? file.lock->duration : std::chrono::seconds(0);
}

std::shared_ptr<store::StoreDirectory> open_core(const std::string& path) {
  return remote::open_store_with_remotes(base::posix_fs(), path);
}

// A given secret is that of the new remote, so the store may be plain.
std::shared_ptr<store::StoreDirectory> open_to_encrypt(const std::string& path) {
  const KeySource source = key_source();
  const bool accepts = source.or_encrypted_remote && source.fingerprint.empty();
  return remote::open_store(base::posix_fs(), path, {}, nullptr, nullptr,
                            accepts ? store::PlainStores::all : store::PlainStores::if_wanted);
}

AddRemoteOptions add_options(const Context& context, const RemoteArguments& arguments) {
  if (!arguments.encrypt && !arguments.recipient.empty()) {
    fail(Errc::invalid_argument, "--recipient: only with --encrypt");
  }
  AddRemoteOptions out;
  out.one_writer = arguments.one_writer;
  out.encrypt = arguments.encrypt;
  out.lock = std::chrono::seconds(static_cast<std::int64_t>(arguments.lock_s));
  if (out.encrypt) out.key = first_key(context.keys, arguments.recipient);
  return out;
}

std::string fingerprint_of(const remote::RemoteFile& file) {
  return file.objects_key.has_value() ? base::hex(file.objects_key->fingerprint) : "";
}

int run_add(Context& context, const RemoteArguments& arguments) {
  const AddRemoteOptions options = add_options(context, arguments);
  const auto store =
      options.encrypt ? open_to_encrypt(arguments.store) : open_core(arguments.store);
  const bool one_creator_wins = remote::add_remote(*store, arguments.name, arguments.url, options);
  Json object{{"store", store->path()},
              {"name", arguments.name},
              {"url", arguments.url},
              {"one_writer", arguments.one_writer},
              {"one_creator_wins", one_creator_wins},
              {"encrypted", options.encrypt}};
  std::string text =
      fmt::format("added {}remote '{}', {}{}", options.encrypt ? "encrypted " : "", arguments.name,
                  arguments.url, arguments.one_writer ? ", with one writer" : "");
  if (options.encrypt) {
    const auto fingerprint = fingerprint_of(remote::read_remote_file(*store, arguments.name));
    object["fingerprint"] = fingerprint;
    text += fmt::format("; the fingerprint of its key is {}", fingerprint);
  }
  const auto lock = lock_of(remote::read_remote_file(*store, arguments.name));
  object["lock_s"] = lock.count();
  if (lock.count() != 0) text += fmt::format("; objects are locked for {}", duration_text(lock));
  context.report(object, text);
  return kExitOk;
}

int run_list(Context& context, const RemoteArguments& arguments) {
  const auto store = open_core(arguments.store);
  Json list = Json::array();
  Table table({{"remote", Table::Align::left},
               {"writers", Table::Align::left},
               {"encrypted", Table::Align::left},
               {"lock", Table::Align::left},
               {"URL", Table::Align::left}});
  for (const std::string& name : remote::remote_names(*store)) {
    const remote::RemoteFile file = remote::read_remote_file(*store, name);
    const bool is_encrypted = store->is_encrypted() || file.objects_key.has_value();
    list.push_back(Json{{"name", name},
                        {"url", file.url},
                        {"one_writer", file.one_writer},
                        {"encrypted", is_encrypted},
                        {"lock_s", lock_of(file).count()},
                        {"fingerprint", fingerprint_of(file)}});
    table.add({printable(name), file.one_writer ? "one" : "any", is_encrypted ? "yes" : "no",
               file.lock.has_value() ? duration_text(file.lock->duration) : "no",
               printable(file.url)});
  }
  if (context.json) {
    context.out.print_json(Json{{"store", store->path()}, {"remotes", std::move(list)}});
  } else if (!list.empty()) {
    table.print(context.out);
  } else {
    context.explain(store->path() + " has no remote: vellum remote add adds one");
  }
  return kExitOk;
}

int run_set_url(Context& context, const RemoteArguments& arguments) {
  const auto store = open_core(arguments.store);
  remote::set_remote_url(*store, arguments.name, arguments.url);
  context.report(Json{{"store", store->path()}, {"name", arguments.name}, {"url", arguments.url}},
                 fmt::format("remote '{}' is at {}", arguments.name, arguments.url));
  return kExitOk;
}

int run_remove(Context& context, const RemoteArguments& arguments) {
  const auto store = open_core(arguments.store);
  remote::remove_remote(*store, arguments.name);
  context.report(Json{{"store", store->path()}, {"name", arguments.name}},
                 fmt::format("removed remote '{}'; its content was not deleted", arguments.name));
  return kExitOk;
}

}  // namespace

void add_remote(CLI::App& app, Context& context) {
  CLI::App& remote = *app.add_subcommand("remote", "Manage the remotes for push and pull");
  remote.require_subcommand(1);
  auto arguments = std::make_shared<RemoteArguments>();
  CLI::App* command =
      add_command(remote, context, "add", "Add a remote, after a probe", arguments->store,
                  [&context, arguments] { return run_add(context, *arguments); });
  command->add_option("NAME", arguments->name, "Its name in this store, such as origin")
      ->required();
  command->add_option("URL", arguments->url, "s3://bucket/prefix or file:///path")->required();
  command->add_flag("--one-writer", arguments->one_writer, "Let only this store push there");
  command
      ->add_option("--lock", arguments->lock_s,
                   "Lock objects for this time, such as 30d (S3 Object Lock, compliance mode)")
      ->transform(CLI::AsNumberWithUnit(
          std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86'400}},
          CLI::AsNumberWithUnit::UNIT_REQUIRED, "TIME"))
      ->check(CLI::Range(1.0, 3.2e9));
  add_encrypt_options(*command, arguments->encrypt, arguments->recipient,
                      "Encrypt the remote of a plain store");
  add_command(remote, context, "list", "List the remotes", arguments->store,
              [&context, arguments] { return run_list(context, *arguments); });
  command = add_command(remote, context, "set-url", "Change the URL of a remote", arguments->store,
                        [&context, arguments] { return run_set_url(context, *arguments); });
  command->add_option("NAME", arguments->name, "Its name")->required();
  command->add_option("URL", arguments->url, "s3://bucket/prefix or file:///path")->required();
  command =
      add_command(remote, context, "remove", "Remove a remote from the list", arguments->store,
                  [&context, arguments] { return run_remove(context, *arguments); });
  command->add_option("NAME", arguments->name, "Its name")->required();
}

}  // namespace vellum::cli
