// cli/commands/group/group_log.cpp: vellum group log and show.
#include <algorithm>

#include "cli/commands/group/cmd_group.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/table.hpp"

namespace vellum::cli {

using Align = Table::Align;

Json group_version_json(const GroupVersionInfo& info) {
  return Json{{"number", info.number},
              {"name", info.name},
              {"epoch", info.epoch},
              {"created_at", utc_time_full(info.created_at)},
              {"repeated", info.is_repeated},
              {"message", info.message},
              {"partitions", info.partitions},
              {"region_bytes", info.region_bytes},
              {"bytes_written", info.bytes_written}};
}

std::string group_version_label(const GroupVersionInfo& info) {
  return info.name.empty() ? std::to_string(info.number) : info.name;
}

namespace {

std::string note_of(const GroupVersionInfo& info) {
  return info.is_repeated && info.name.empty() ? "(a job began here)" : first_line(info.message);
}

Json partition_json(const GroupPartitionInfo& p) {
  return Json{{"number", p.number},
              {"store", p.store},
              {"store_id", p.store_id},
              {"branch", p.branch},
              {"snapshot", p.snapshot},
              {"host", p.host},
              {"sequence", p.sequence},
              {"region_bytes", p.region_bytes},
              {"bytes_written", p.bytes_written}};
}

void print_version(Output& out, const GroupVersionInfo& info) {
  out.print_text("version     {}\n", info.number);
  if (!info.name.empty()) out.print_text("name        {}\n", printable(info.name));
  out.print_text("made        {}\n", out.time(info.created_at));
  out.print_text("job         {}\n", info.epoch);
  if (!info.message.empty()) out.print_text("message     {}\n", printable(info.message));
  out.print_text("size        {} in {}\n", human_bytes(info.region_bytes),
                 counted(info.partitions, "partition"));
  out.print_text("written     {}\n\n", human_bytes(info.bytes_written));
}

}  // namespace

int run_group_log(Context& context, const GroupArguments& arguments) {
  auto versions = group_versions(arguments.records);
  std::reverse(versions.begin(), versions.end());
  if (context.json) {
    Json list = Json::array();
    for (const auto& info : versions) list.push_back(group_version_json(info));
    context.out.print_json(Json{{"records", arguments.records}, {"versions", std::move(list)}});
    return kExitOk;
  }
  Table table({{"version", Align::right},
               {"name", Align::left, 5, Table::Narrowing::cut},
               {"made", Align::left, 3, Table::Narrowing::shorten_time},
               {"job", Align::right, 1},
               {"partitions", Align::right, 2},
               {"size", Align::right},
               {"written", Align::right},
               {"message", Align::left, 4, Table::Narrowing::cut}});
  for (const auto& info : versions) {
    table.add({std::to_string(info.number), printable(info.name), context.out.time(info.created_at),
               std::to_string(info.epoch), std::to_string(info.partitions),
               human_bytes(info.region_bytes), human_bytes(info.bytes_written),
               printable(note_of(info))});
  }
  if (!versions.empty()) table.print(context.out);
  if (versions.empty()) context.explain(arguments.records + " has no version yet");
  return kExitOk;
}

int run_group_show(Context& context, const GroupArguments& arguments) {
  const auto version = GroupVersion::open(arguments.records, arguments.version, arguments.stores);
  if (context.json) {
    Json object = group_version_json(version.info());
    Json partitions = Json::array();
    for (std::uint32_t p = 0; p < version.partitions(); ++p) {
      partitions.push_back(partition_json(version.partition(p)));
    }
    object["partitions"] = std::move(partitions);
    context.out.print_json(object);
    return kExitOk;
  }
  print_version(context.out, version.info());
  Table table({{"partition", Align::right},
               {"size", Align::right},
               {"written", Align::right},
               {"host", Align::left},
               {"branch", Align::left},
               {"store", Align::left}});
  for (std::uint32_t p = 0; p < version.partitions(); ++p) {
    const auto info = version.partition(p);
    table.add({std::to_string(p), human_bytes(info.region_bytes), human_bytes(info.bytes_written),
               printable(info.host), printable(info.branch), printable(info.store)});
  }
  table.print(context.out);
  return kExitOk;
}

}  // namespace vellum::cli
