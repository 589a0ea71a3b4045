// cli/commands/history/cmd_show.cpp: vellum show: prints all that is known of one version.
#include <memory>
#include <sstream>

#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/version_names.hpp"

namespace vellum::cli {
namespace {

struct ShowArguments {
  std::string store;
  std::string version;
};

void print_message(Output& out, const std::string& message) {
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    out.write("    " + printable(line) + "\n");
  }
}

void print_version(Output& out, const VersionInfo& v) {
  out.print("version  {}\n", printable(v.name));
  out.print("kind     {}\n", kind_name(v));
  out.print("branch   {}\n", printable(v.branch));
  out.print("commit   {}\n", v.sequence);
  if (v.is_branch) {
    out.print("time     {}\n", utc_time_full(v.committed_at));
  } else {
    out.print("made     {}, as number {}\n", utc_time_full(v.created_at), v.order);
    out.print("time     {} of the commit\n", utc_time_full(v.committed_at));
  }
  out.print("parent   {}\n", v.parent.empty() ? "none" : printable(v.parent));
  out.print("region   {} ({} bytes)\n", human_bytes(v.region_bytes), v.region_bytes);
  if (v.file_bytes != v.region_bytes) {
    out.print("file     {} ({} bytes)\n", human_bytes(v.file_bytes), v.file_bytes);
  }
  out.print("changed  {} since the parent\n", counted(v.pages_changed, "page"));
  out.print("added    {} ({} bytes)\n", human_bytes(v.bytes_added), v.bytes_added);
  if (v.encoding) out.print("encoding {}\n", encoding_text(*v.encoding));
  if (!v.message.empty()) {
    out.write("\n");
    print_message(out, v.message);
  }
}

int run_show(Context& context, const ShowArguments& arguments) {
  const Store store = Store::open(arguments.store);
  const VersionInfo version = store.version(resolve_version(store, arguments.version));
  if (context.json) {
    Json object = version_json(version);
    object["store"] = store.path();
    context.out.print_json(object);
  } else {
    print_version(context.out, version);
  }
  return kExitOk;
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ShowArguments>();
  CLI::App* command = add_command(app, context, "show",
                                  "Say everything that is known of one version", arguments->store,
                                  [&context, arguments] { return run_show(context, *arguments); });
  command->add_option("VERSION", arguments->version, "A branch (its head) or a snapshot")
      ->required();
}

}  // namespace vellum::cli
