// cli/commands/cmd_prove.cpp: vellum prove: a proof that bytes belong to a signed version.
#include <memory>
#include <optional>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "cli/names/listing.hpp"
#include "cli/options/arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {
namespace {

struct ProveArguments {
  std::string store, version;
  std::string range;  // OFFSET+LENGTH, or OFFSET: one byte
  std::string file;
};

ByteRange parse_range(const std::string& text) {
  const std::size_t plus = text.find('+');
  ByteRange out;
  out.offset_bytes = parse_size("RANGE", text.substr(0, plus));
  out.length_bytes = plus == std::string::npos ? 1 : parse_size("RANGE", text.substr(plus + 1));
  return out;
}

int run_prove(Context& context, ProveArguments arguments) {
  context.raw_output = arguments.file.empty();
  const Store store = Store::open(arguments.store);
  arguments.version = resolve_version(store, arguments.version);
  const auto proof = store.prove(arguments.version, parse_range(arguments.range));
  const std::string_view bytes(reinterpret_cast<const char*>(proof.data()), proof.size());
  if (arguments.file.empty()) {
    context.out.write(bytes);
    return kExitOk;
  }
  base::NewFile out(base::posix_fs(), arguments.file);
  out.file().pwrite(proof, 0);
  out.publish();
  context.report(Json{{"store", store.path()},
                      {"version", arguments.version},
                      {"file", arguments.file},
                      {"bytes", proof.size()}},
                 fmt::format("{}: a proof of {} bytes", arguments.file, proof.size()));
  return kExitOk;
}

}  // namespace

void add_prove(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ProveArguments>();
  CLI::App* command = add_command(app, context, "prove",
                                  "Prove that bytes belong to a signed version", arguments->store,
                                  [&context, arguments] { return run_prove(context, *arguments); });
  command->add_option("VERSION", arguments->version, "A signed snapshot")->required();
  command
      ->add_option("RANGE", arguments->range,
                   "The bytes, as OFFSET+LENGTH; the proof is for the pages that have them")
      ->required();
  command->add_option("-o,--output", arguments->file, "Write the proof to a new file")
      ->type_name("FILE");
}

}  // namespace vellum::cli
