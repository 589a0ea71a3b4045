// cli/commands/cmd_stat.cpp: vellum stat: the space of a store, compared with full copies of its
// versions.
#include <memory>

#include "cli/history/space.hpp"
#include "cli/names/listing.hpp"
#include "cli/remote/remote_commands.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/table.hpp"
#include "remote/engine/url.hpp"

namespace vellum::cli {
namespace {

struct StatArguments {
  std::string store;
};

// Size of full copies divided by that of the store; 0 if nothing can be compared.
double ratio(const StoreStat& stat) {
  if (stat.stored_bytes == 0) {
    return 0;
  }
  return static_cast<double>(stat.full_copy_bytes) / static_cast<double>(stat.stored_bytes);
}

Json stat_json(const Store& store, const StoreStat& stat,
               const std::vector<VersionInfo>& versions) {
  const StoreOptions options = store.options();
  Json list = Json::array();
  for (const VersionInfo& v : versions) {
    const VersionSpace space = space_of(stat, v);
    Json line = version_json(v);
    line["unique_bytes"] = space.unique_bytes;
    line["shared_bytes"] = space.shared_bytes;
    list.push_back(std::move(line));
  }
  Json object{{"store", store.path()},
              {"id", store.id()},
              {"pack_size_bytes", options.pack_bytes},
              {"stored_bytes", stat.stored_bytes},
              {"pack_bytes", stat.pack_bytes},
              {"pack_needed_bytes", stat.pack_needed_bytes},
              {"pack_freeable_bytes", stat.pack_freeable_bytes},
              {"journal_bytes", stat.journal_bytes},
              {"ref_bytes", stat.ref_bytes},
              {"packs", stat.packs},
              {"archive_packs", stat.archive_packs},
              {"archive_bytes", stat.archive_bytes},
              {"cache_copies", stat.cache_copies},
              {"cache_bytes", stat.cache_bytes},
              {"snapshots", stat.snapshots},
              {"branches", stat.branches},
              {"full_copy_bytes", stat.full_copy_bytes},
              {"ratio", ratio(stat)},
              {"versions", std::move(list)}};
  object.update(encoding_json(options.encoding));
  return object;
}

// Prints the branches whose encoding differs from the store's.
void print_encodings(Output& out, const std::vector<VersionInfo>& versions) {
  for (const VersionInfo& v : versions) {
    if (!v.encoding) continue;
    out.print_text("  {}: {}\n", printable(v.name), encoding_text(*v.encoding));
  }
}

void print_totals(Output& out, const Store& store, const StoreStat& stat,
                  const std::vector<VersionInfo>& versions) {
  const StoreOptions options = store.options();
  out.print_text("store        {}\n", printable(store.path()));
  out.print_text("id           {}\n", store.id());
  out.print_text("created with {}, blocks of {}, packs of {}\n", compression_text(options.encoding),
                 human_bytes(options.encoding.block_bytes), human_bytes(options.pack_bytes));
  print_encodings(out, versions);
  out.print_text("versions     {}, {}\n", counted(stat.snapshots, "snapshot"),
                 counted(stat.branches, "branch"));
  out.print_text("packs        {} in {}\n", human_bytes(stat.pack_bytes),
                 counted(stat.packs, "file"));
  out.print_text("  needed     {}; gc would free {}\n", human_bytes(stat.pack_needed_bytes),
                 human_bytes(stat.pack_freeable_bytes));
  if (stat.archive_packs != 0) {
    out.print_text("  archived   {} in {}\n", human_bytes(stat.archive_bytes),
                   counted(stat.archive_packs, "file"));
  }
  if (stat.cache_copies != 0) {
    out.print_text("caches       {} in {}\n", human_bytes(stat.cache_bytes),
                   counted(stat.cache_copies, "file"));
  }
  out.print_text("journals     {}\n", human_bytes(stat.journal_bytes));
  out.print_text("refs         {}\n", human_bytes(stat.ref_bytes));
  out.print_text("on disk      {}\n", human_bytes(stat.stored_bytes));
  const bool is_comparable = stat.full_copy_bytes > 0 && stat.stored_bytes > 0;
  out.print_text("full copies  {}, without their zero pages{}\n", human_bytes(stat.full_copy_bytes),
                 is_comparable ? fmt::format(": {:.1f} times the store", ratio(stat)) : "");
}

// Prints the space that removing one version would free, and the space that it shares with others.
void print_space(Output& out, const StoreStat& stat, const std::vector<VersionInfo>& versions) {
  using Align = Table::Align;
  using enum Table::Narrowing;
  Table table({{"name", Align::left, 3, cut},
               {"kind", Align::left, 2},
               {"time", Align::left, 1, shorten_time},
               {"unique", Align::right},
               {"shared", Align::right}});
  for (const VersionInfo& v : versions) {
    const VersionSpace space = space_of(stat, v);
    table.add({printable(v.name), kind_name(v), out.time(shown_time(v)),
               human_bytes(space.unique_bytes), human_bytes(space.shared_bytes)});
  }
  table.print(out);
}

int run_stat(Context& context, const StatArguments& arguments) {
  if (remote::is_remote_url(arguments.store)) return stat_remote(context, arguments.store);
  const Store store = Store::open(arguments.store);
  const StoreStat stat = store.stat();
  std::vector<VersionInfo> versions = store.versions();
  sort_newest_first(versions);
  if (context.json) {
    context.out.print_json(stat_json(store, stat, versions));
    return kExitOk;
  }
  print_totals(context.out, store, stat, versions);
  if (!versions.empty()) {
    context.out.write("\n");
    print_space(context.out, stat, versions);
  }
  return kExitOk;
}

}  // namespace

void add_stat(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<StatArguments>();
  add_command(app, context, "stat",
              "Compare the space of a store with that of full copies of its versions",
              arguments->store, [&context, arguments] { return run_stat(context, *arguments); });
}

}  // namespace vellum::cli
