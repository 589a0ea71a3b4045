// cli/commands/cmd_init.cpp: vellum init: creates an empty store.
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "base/fail.hpp"
#include "cli/options/arguments.hpp"
#include "cli/options/encoding_arguments.hpp"
#include "cli/options/key_arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {
namespace {

struct InitArguments {
  std::string store;
  EncodingArguments encoding;
  std::optional<std::string> pack_size;
  bool encrypt = false;
  std::string recipient;
};

StoreOptions options_from(const Context& context, const InitArguments& arguments) {
  StoreOptions options;
  options.encoding = arguments.encoding.on(options.encoding);
  if (arguments.pack_size) {
    options.pack_bytes = parse_size("--pack-size", *arguments.pack_size);
  }
  options.encrypt = arguments.encrypt;
  if (arguments.encrypt) options.key = first_key(context.keys, arguments.recipient);
  if (!arguments.encrypt && !arguments.recipient.empty()) {
    fail(Errc::invalid_argument, "--recipient: only with --encrypt");
  }
  return options;
}

// For a file, the library would only report that it cannot list it.
void require_no_file(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) {
    fail(Errc::already_exists, "{}: exists and is not a directory", path);
  }
}

int run_init(Context& context, const InitArguments& arguments) {
  require_no_file(arguments.store);
  const Store store = Store::create(arguments.store, options_from(context, arguments));
  const StoreOptions options = store.options();
  Json object{{"store", store.path()},
              {"id", store.id()},
              {"pack_bytes", options.pack_bytes},
              {"encrypted", options.encrypt}};
  object.update(encoding_json(options.encoding));
  std::string text = fmt::format(
      "created {}store {} ({}, blocks of {}, packs of {})", options.encrypt ? "encrypted " : "",
      store.path(), compression_text(options.encoding), human_bytes(options.encoding.block_bytes),
      human_bytes(options.pack_bytes));
  if (options.encrypt) {
    object["fingerprint"] = store.key_fingerprint();
    text += fmt::format("; the fingerprint of its key is {}", store.key_fingerprint());
  }
  context.report(object, text);
  return kExitOk;
}

}  // namespace

void add_init(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<InitArguments>();
  CLI::App* command = add_command(app, context, "init", "Create an empty store", arguments->store,
                                  [&context, arguments] { return run_init(context, *arguments); });
  add_encoding_options(*command, arguments->encoding);
  command
      ->add_option("--pack-size", arguments->pack_size,
                   "The size at which a pack file is sealed: 1M to 1T (default: 256M)")
      ->type_name("SIZE");
  add_encrypt_options(*command, arguments->encrypt, arguments->recipient,
                      "Encrypt the store's files");
}

}  // namespace vellum::cli
