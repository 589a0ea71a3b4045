// cli/names/listing.cpp: lists of versions.
#include "cli/names/listing.hpp"

#include <algorithm>

#include "cli/names/snapshot_set.hpp"
#include "cli/names/version_graph.hpp"
#include "cli/terminal/table.hpp"

namespace vellum::cli {
namespace {

// The table of versions, optionally with a drawing before each row.
class VersionTable {
 public:
  VersionTable(Output& out, const std::vector<VersionInfo>& versions, bool drawn)
      : out_(out),
        drawn_(drawn),
        encodings_(std::any_of(versions.begin(), versions.end(),
                               [](const VersionInfo& v) { return v.encoding.has_value(); })),
        table_(columns()) {}

  void add(const VersionInfo& v, const std::string& drawing = "") {
    std::vector<std::string> row;
    if (drawn_) row.push_back(drawing);
    row.insert(row.end(), {printable(v.name), kind_name(v), out_.time(shown_time(v)),
                           fmt::format("{}", v.sequence), human_bytes(v.file_bytes),
                           fmt::format("{}", v.pages_changed), human_bytes(v.bytes_added)});
    if (encodings_) row.push_back(v.encoding ? encoding_text(*v.encoding) : "");
    row.push_back(first_line(v.message));
    table_.add(std::move(row));
  }
  void add(const SnapshotSet& set) {
    const auto sum = [&](auto member) {
      std::uint64_t total = 0;
      for (const VersionInfo& v : set.members) total += v.*member;
      return total;
    };
    const VersionInfo& first = set.members.front();
    std::vector<std::string> row{printable(set.name),
                                 "set",
                                 out_.time(shown_time(first)),
                                 "",
                                 human_bytes(sum(&VersionInfo::file_bytes)),
                                 fmt::format("{}", sum(&VersionInfo::pages_changed)),
                                 human_bytes(sum(&VersionInfo::bytes_added))};
    if (encodings_) row.push_back("");
    const std::string members = members_text(set);
    row.push_back(first.message.empty() ? members : members + ": " + first_line(first.message));
    table_.add(std::move(row));
  }
  void add_drawing(const std::string& drawing) { table_.add({drawing}); }
  void print() const { table_.print(out_); }

 private:
  std::vector<Table::Column> columns() const {
    using enum Table::Align;
    using enum Table::Narrowing;
    std::vector<Table::Column> columns;
    if (drawn_) columns.push_back({"", left});
    columns.insert(columns.end(), {{"version", left, 8, cut},
                                   {"kind", left, 5},
                                   {"time", left, 3, shorten_time},
                                   {"commit", right, 1},
                                   {"size", right, 2},
                                   {"changed pages", right, 6},
                                   {"added", right, 7}});
    if (encodings_) columns.push_back({"encoding", left, 5});
    columns.push_back({"message", left, 4, cut});
    return columns;
  }

  Output& out_;
  bool drawn_, encodings_;
  Table table_;
};

// A set is one row, where its newest member stands.
void print_table(Output& out, const std::vector<VersionInfo>& versions) {
  VersionTable table(out, versions, false);
  std::vector<VersionInfo> others = versions;
  const std::vector<SnapshotSet> sets = take_sets(others);
  auto next = sets.begin();  // the sets are in the order of their newest members
  for (const VersionInfo& v : versions) {
    const std::string set = set_id_of(v);
    if (set.empty()) {
      table.add(v);
    } else if (next != sets.end() && set_id_of(next->members.front()) == set) {
      table.add(*next++);
    }
  }
  table.print();
}

}  // namespace

std::chrono::system_clock::time_point shown_time(const VersionInfo& version) {
  return version.is_branch ? version.committed_at : version.created_at;
}

void print_versions(Context& context, const std::string& place,
                    const std::vector<VersionInfo>& versions, bool names_only) {
  if (context.json) {
    Json list = Json::array();
    for (const VersionInfo& v : versions) {
      Json version = version_json(v);
      const std::string set = set_of(v);
      version["set"] = set.empty() ? Json(nullptr) : Json(set);
      list.push_back(std::move(version));
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

void print_graph(Context& context, const std::vector<VersionInfo>& versions, bool names_only) {
  VersionTable table(context.out, versions, true);
  for (const GraphRow& row : graph_of(versions)) {
    if (names_only) {
      context.out.write(row.drawing + (row.version ? printable(row.version->name) : "") + "\n");
    } else if (row.version) {
      table.add(*row.version, row.drawing);
    } else {
      table.add_drawing(row.drawing);
    }
  }
  if (!names_only && !versions.empty()) table.print();
}

void list_kind(Context& context, const std::string& store_path, bool branches, bool names_only) {
  const Store store = Store::open(store_path);
  std::vector<VersionInfo> versions = branches ? branch_heads(store) : snapshots_named(store, "");
  if (!branches) sort_newest_first(versions);
  print_versions(context, store.path(), versions, names_only);
}

}  // namespace vellum::cli
