// cli/commands/history/cmd_du.cpp: vellum du: the size of each version in the store.
#include <algorithm>
#include <memory>
#include <tuple>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "cli/history/space.hpp"
#include "cli/names/listing.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/table.hpp"
#include "remote/session/missing_pieces.hpp"

namespace vellum::cli {
namespace {

struct DuArguments {
  std::string store;
  std::vector<std::string> versions;
};

struct Cost {
  VersionInfo version;
  VersionSpace space;
};

// The named versions; without names all of them, the largest first.
std::vector<Cost> costs_of(const Store& store, const StoreStat& stat,
                           const std::vector<std::string>& wanted) {
  std::vector<VersionInfo> versions;
  for (const std::string& name : wanted) {
    versions.push_back(store.version(resolve_version(store, name)));
    if (is_commit(versions.back()))
      fail(Errc::invalid_argument,
           "'{}' is a commit, whose changes are in its branch's journal: only snapshots and "
           "branches have a size in packs",
           name);
  }
  if (wanted.empty()) versions = store.versions();
  std::vector<Cost> costs;
  for (const VersionInfo& v : versions) costs.push_back({v, space_of(stat, v)});
  if (wanted.empty()) {
    std::sort(costs.begin(), costs.end(), [](const Cost& a, const Cost& b) {
      return std::tie(b.space.unique_bytes, a.version.name) <
             std::tie(a.space.unique_bytes, b.version.name);
    });
  }
  return costs;
}

// The packs' bytes by the number of versions that need them.
struct PackShares {
  std::uint64_t by_one = 0, by_several = 0, by_none = 0;
};

PackShares shares_of(const StoreStat& stat) {
  PackShares shares;
  for (const VersionSpace& space : stat.versions) shares.by_one += space.unique_bytes;
  // An open version without a name counts as one that needs its bytes, but has no row.
  shares.by_several = stat.pack_needed_bytes - std::min(stat.pack_needed_bytes, shares.by_one);
  shares.by_none = stat.pack_bytes - std::min(stat.pack_bytes, stat.pack_needed_bytes);
  return shares;
}

// Then the bytes of local packs are not the sum of the bytes that versions need.
bool has_remote_packs(const Store& store) {
  return remote::has_missing_pieces(base::posix_fs(), store.path());
}

void print_costs(Output& out, const Store& store, const StoreStat& stat,
                 const std::vector<Cost>& costs) {
  using enum Table::Align;
  Table table({{"own", right},
               {"shared", right},
               {"added", right},
               {"full copy", right},
               {"kind", left, 1},
               {"version", left, 2, Table::Narrowing::cut}});
  for (const auto& [version, space] : costs) {
    table.add({human_bytes(space.unique_bytes), human_bytes(space.shared_bytes),
               human_bytes(version.bytes_added), human_bytes(space.nonzero_bytes),
               kind_name(version), printable(version.name)});
  }
  table.print(out);
  if (has_remote_packs(store)) {
    out.print_text("\n{} in local packs; the others are at the remote\n",
                   human_bytes(stat.pack_bytes));
    return;
  }
  const PackShares shares = shares_of(stat);
  out.print_text("\n{} in packs: {} needed by one version, {} by several, {} by none\n",
                 human_bytes(stat.pack_bytes), human_bytes(shares.by_one),
                 human_bytes(shares.by_several), human_bytes(shares.by_none));
}

Json costs_json(const Store& store, const StoreStat& stat, const std::vector<Cost>& costs) {
  Json list = Json::array();
  for (const auto& [version, space] : costs) {
    list.push_back(Json{{"name", version.name},
                        {"kind", kind_name(version)},
                        {"unique_bytes", space.unique_bytes},
                        {"shared_bytes", space.shared_bytes},
                        {"bytes_added", version.bytes_added},
                        {"nonzero_bytes", space.nonzero_bytes}});
  }
  const PackShares shares = shares_of(stat);
  const bool is_split = !has_remote_packs(store);
  const auto part = [&](std::uint64_t bytes) { return is_split ? Json(bytes) : Json(nullptr); };
  return Json{{"store", store.path()},
              {"versions", std::move(list)},
              {"pack_bytes", stat.pack_bytes},
              {"needed_by_one_bytes", part(shares.by_one)},
              {"needed_by_several_bytes", part(shares.by_several)},
              {"needed_by_none_bytes", part(shares.by_none)}};
}

int run_du(Context& context, const DuArguments& arguments) {
  const Store store = Store::open(arguments.store);
  const StoreStat stat = store.stat();
  const std::vector<Cost> costs = costs_of(store, stat, arguments.versions);
  if (context.json) {
    context.out.print_json(costs_json(store, stat, costs));
  } else {
    print_costs(context.out, store, stat, costs);
  }
  return kExitOk;
}

}  // namespace

void add_du(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<DuArguments>();
  CLI::App* command =
      add_command(app, context, "du", "Print the size of each version in the store",
                  arguments->store, [&context, arguments] { return run_du(context, *arguments); });
  command->add_option("VERSION", arguments->versions,
                      "Only these versions, in this order (default: all, the largest first)");
}

}  // namespace vellum::cli
