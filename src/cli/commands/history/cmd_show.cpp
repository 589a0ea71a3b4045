// cli/commands/history/cmd_show.cpp: vellum show: prints everything about one version.
#include <memory>
#include <optional>
#include <sstream>

#include "base/bytes/hex.hpp"
#include "cli/history/change_stat.hpp"
#include "cli/history/line.hpp"
#include "cli/names/listing.hpp"
#include "cli/names/snapshot_set.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {
namespace {

struct ShowArguments {
  std::string store;
  std::string version;
  bool stat = false;
};

void print_message(Output& out, const std::string& message) {
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    out.print_text("    {}\n", printable(line));
  }
}

void print_version(Output& out, const VersionInfo& v) {
  out.print_text("version  {}\n", printable(v.name));
  out.print_text("kind     {}\n", kind_name(v));
  out.print_text("branch   {}\n", printable(v.branch));
  out.print_text("commit   {}\n", v.sequence);
  if (v.is_branch || is_commit(v)) {
    out.print_text("time     {}\n", out.full_time(v.committed_at));
  } else {
    out.print_text("created  {}, as number {}\n", out.full_time(v.created_at), v.order);
    out.print_text("time     {} of the commit\n", out.full_time(v.committed_at));
  }
  out.print_text("parent   {}\n", v.parent.empty() ? "none" : printable(v.parent));
  out.print_text("size     {} ({} bytes)\n", human_bytes(v.file_bytes), v.file_bytes);
  if (v.signature) {
    out.print_text("signed   number {}, by {}; not checked\n", v.signature->number,
                   base::hex(v.signature->key));
  }
  if (v.file_bytes != v.region_bytes) {
    out.print_text("region   {} ({} bytes)\n", human_bytes(v.region_bytes), v.region_bytes);
  }
  out.print_text("changed  {} since the parent\n", counted(v.pages_changed, "page"));
  out.print_text("added    {} ({} bytes)\n", human_bytes(v.bytes_added), v.bytes_added);
  if (v.encoding) out.print_text("encoding {}\n", encoding_text(*v.encoding));
  if (!v.message.empty()) {
    out.write("\n");
    print_message(out, v.message);
  }
}

std::optional<ChangeStat> change_since_parent(const Store& store, const VersionInfo& version) {
  const auto parent = existing_parent(store, version);
  if (!parent) return std::nullopt;
  return change_stat(store, parent->name, version.name);
}

void print_change(Output& out, const VersionInfo& version,
                  const std::optional<ChangeStat>& change) {
  out.write("\n");
  if (!change) {
    out.write("no earlier version on its line exists any more\n");
    return;
  }
  print_parts(out, *change);
  out.print_text("{} in {} on {} since '{}'\n", counted(change->totals.bytes_different, "byte"),
                 counted(change->totals.ranges, "range"),
                 counted(change->totals.pages_different, "page"), printable(version.parent));
}

Json change_json(const ChangeStat& change) {
  Json object = parts_json(change);
  object["pages_different"] = change.totals.pages_different;
  object["bytes_different"] = change.totals.bytes_different;
  object["range_count"] = change.totals.ranges;
  return object;
}

int show_set(Context& context, const Store& store, const SnapshotSet& set) {
  if (context.json) {
    Json members = Json::array();
    for (const VersionInfo& v : set.members) members.push_back(version_json(v));
    context.out.print_json(Json{{"store", store.path()},
                                {"set", set.name},
                                {"complete", set.complete()},
                                {"members", std::move(members)}});
    return kExitOk;
  }
  context.out.print("set      {}{}\n", printable(set.name),
                    set.complete() ? "" : ", incomplete: " + members_text(set));
  for (const VersionInfo& v : set.members) {
    context.out.print("member   {}: {}, commit {} of {}\n", printable(v.name),
                      human_bytes(v.file_bytes), v.sequence, printable(v.branch));
  }
  if (set.members.front().message.empty()) return kExitOk;
  context.out.write("\n");
  print_message(context.out, set.members.front().message);
  return kExitOk;
}

int run_show(Context& context, const ShowArguments& arguments) {
  const Store store = Store::open(arguments.store);
  if (const SnapshotSet set = find_set(store, arguments.version); !set.members.empty())
    return show_set(context, store, set);
  const VersionInfo version = store.version(resolve_version(store, arguments.version));
  std::optional<ChangeStat> change;
  if (arguments.stat) change = change_since_parent(store, version);
  if (context.json) {
    Json object = version_json(version);
    object["store"] = store.path();
    if (arguments.stat) object["stat"] = change ? change_json(*change) : Json(nullptr);
    context.out.print_json(object);
    return kExitOk;
  }
  print_version(context.out, version);
  if (arguments.stat) print_change(context.out, version, change);
  return kExitOk;
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ShowArguments>();
  CLI::App* command =
      add_command(app, context, "show", "Print everything about one version", arguments->store,
                  [&context, arguments] { return run_show(context, *arguments); });
  command->add_option("VERSION", arguments->version, "A branch (its head), a snapshot or a set")
      ->required();
  command->add_flag("--stat", arguments->stat,
                    "Also print the changes of each part of the region since the parent");
}

}  // namespace vellum::cli
