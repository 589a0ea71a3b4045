// cli/commands/history/cmd_blame.cpp: vellum blame: prints the version that last changed each byte.
#include <memory>
#include <optional>

#include "base/fail.hpp"
#include "cli/history/blame.hpp"
#include "cli/history/line.hpp"
#include "cli/names/listing.hpp"
#include "cli/options/arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "cli/terminal/table.hpp"

namespace vellum::cli {
namespace {

struct BlameArguments {
  std::string store;
  std::string stretch;
  std::optional<std::string> offset, length;
  bool pages = false;
};

ByteRange requested_range(const BlameArguments& arguments, const VersionInfo& last) {
  const std::uint64_t offset =
      arguments.offset ? parse_size("--offset", *arguments.offset) : std::uint64_t{0};
  if (offset >= last.region_bytes)
    fail(Errc::invalid_argument, "--offset {} is past the end of '{}', which has {} bytes", offset,
         last.name, last.region_bytes);
  const std::uint64_t rest = last.region_bytes - offset;
  const std::uint64_t length = arguments.length ? parse_size("--length", *arguments.length) : rest;
  if (length == 0 || length > rest)
    fail(Errc::invalid_argument,
         "--length {} is not between 1 and {}, the bytes of '{}' after the offset", length, rest,
         last.name);
  return {offset, length};
}

void print_text(Output& out, const std::vector<VersionInfo>& versions,
                const std::vector<Blamed>& blamed) {
  using enum Table::Align;
  using enum Table::Narrowing;
  Table table({{"offset", right},
               {"length", right},
               {"version", left, 3, cut},
               {"time", left, 1, shorten_time},
               {"message", left, 2, cut}});
  for (const Blamed& b : blamed) {
    const VersionInfo& v = versions[b.version];
    table.add({fmt::format("{}", b.range.offset_bytes), fmt::format("{}", b.range.length_bytes),
               printable(v.name) + (b.version == 0 ? " or before" : ""), out.time(shown_time(v)),
               first_line(v.message)});
  }
  table.print(out);
}

Json json_of(const Store& store, const std::vector<VersionInfo>& versions,
             const std::vector<Blamed>& blamed) {
  Json ranges = Json::array();
  for (const Blamed& b : blamed) {
    ranges.push_back(Json{{"offset", b.range.offset_bytes},
                          {"length", b.range.length_bytes},
                          {"version", versions[b.version].name},
                          {"or_before", b.version == 0}});
  }
  return Json{{"store", store.path()},
              {"oldest", versions.front().name},
              {"newest", versions.back().name},
              {"ranges", std::move(ranges)}};
}

int run_blame(Context& context, const BlameArguments& arguments) {
  const Store store = Store::open(arguments.store);
  const auto versions = versions_of(store, arguments.stretch);
  const ByteRange range = requested_range(arguments, versions.back());
  const auto blamed = [&] {
    ProgressMeter meter("blame", context.progress_wanted());
    return blame(store, versions, range, arguments.pages, meter.callback());
  }();
  if (context.json) {
    context.out.print_json(json_of(store, versions, blamed));
  } else {
    print_text(context.out, versions, blamed);
  }
  return kExitOk;
}

}  // namespace

void add_blame(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<BlameArguments>();
  CLI::App* command = add_command(app, context, "blame",
                                  "Print the version that last changed each byte", arguments->store,
                                  [&context, arguments] { return run_blame(context, *arguments); });
  command->add_option("A..B", arguments->stretch,
                      "The versions from A to B, or all of B's line (default: main)");
  command->add_option("--offset", arguments->offset, "The first byte (default: 0)")
      ->type_name("SIZE");
  command
      ->add_option("--length", arguments->length,
                   "The number of bytes (default: all up to the end)")
      ->type_name("SIZE");
  command->add_flag("--pages", arguments->pages, "Work on whole pages of 4096 bytes");
}

}  // namespace vellum::cli
