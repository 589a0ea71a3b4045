// cli/terminal/listing.cpp: lists of versions.
#include "cli/terminal/listing.hpp"

#include <algorithm>
#include <tuple>

namespace vellum::cli {
namespace {

void print_table(Output& out, const std::vector<VersionInfo>& versions) {
  using enum Table::Align;
  std::vector<std::pair<std::string, Table::Align>> columns{
      {"version", left}, {"kind", left},           {"time", left},  {"commit", right},
      {"region", right}, {"changed pages", right}, {"added", right}};
  const bool encodings = std::any_of(versions.begin(), versions.end(),
                                     [](const VersionInfo& v) { return v.encoding.has_value(); });
  if (encodings) columns.push_back({"encoding", left});
  columns.push_back({"message", left});
  Table table(columns);
  for (const VersionInfo& v : versions) {
    std::vector<std::string> row{printable(v.name),           kind_name(v),
                                 utc_time(shown_time(v)),     fmt::format("{}", v.sequence),
                                 human_bytes(v.region_bytes), fmt::format("{}", v.pages_changed),
                                 human_bytes(v.bytes_added)};
    if (encodings) row.push_back(v.encoding ? encoding_text(*v.encoding) : "");
    row.push_back(first_line(v.message));
    table.add(std::move(row));
  }
  table.print(out);
}

}  // namespace

void sort_newest_first(std::vector<VersionInfo>& versions) {
  std::sort(versions.begin(), versions.end(), [](const VersionInfo& a, const VersionInfo& b) {
    return std::tie(b.is_branch, b.order, a.name) < std::tie(a.is_branch, a.order, b.name);
  });
}

std::chrono::system_clock::time_point shown_time(const VersionInfo& version) {
  return version.is_branch ? version.committed_at : version.created_at;
}

void print_versions(Context& context, const std::string& place,
                    const std::vector<VersionInfo>& versions, bool names_only) {
  if (context.json) {
    Json list = Json::array();
    for (const VersionInfo& v : versions) {
      list.push_back(version_json(v));
    }
    context.out.print_json(Json{{"store", place}, {"versions", std::move(list)}});
  } else if (names_only) {
    for (const VersionInfo& v : versions) {
      context.out.write(printable(v.name) + "\n");
    }
  } else if (!versions.empty()) {
    print_table(context.out, versions);
  }
}

void list_kind(Context& context, const std::string& store_path, bool branches, bool names_only) {
  const Store store = Store::open(store_path);
  std::vector<VersionInfo> versions = store.versions();
  std::erase_if(versions, [&](const VersionInfo& v) { return v.is_branch != branches; });
  if (!branches) {
    sort_newest_first(versions);
  }
  print_versions(context, store.path(), versions, names_only);
}

}  // namespace vellum::cli
