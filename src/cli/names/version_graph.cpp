#include "cli/names/version_graph.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace vellum::cli {
namespace {

std::string repeated(std::string_view part, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += part;
  return out;
}

// The columns of the drawing: each waits for the next version of its line.
class Drawing {
 public:
  void add(VersionInfo version, const std::string& parent) {
    join_columns_of(version.name);
    const auto found = std::find(columns_.begin(), columns_.end(), version.name);
    const auto at = static_cast<std::size_t>(found - columns_.begin());
    if (found == columns_.end()) columns_.push_back(version.name);
    rows_.push_back({repeated("| ", at) + "* " + repeated("| ", columns_.size() - at - 1),
                     std::move(version), parent});
    columns_[at] = parent;
    if (parent.empty()) end_column(at);
  }
  std::vector<GraphRow> take() { return std::move(rows_); }

 private:
  void draw(std::string row) { rows_.push_back({std::move(row), std::nullopt, ""}); }

  // Several lines have the same parent: all but the first bend to the first, from the right.
  void join_columns_of(const std::string& name) {
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    const auto first = static_cast<std::size_t>(found - columns_.begin());
    for (std::size_t at = columns_.size(); at-- > first + 1;) {
      if (columns_[at] != name) continue;
      draw(repeated("| ", first) + repeated("|_", at - first - 1) + "|/" +
           repeated(" /", columns_.size() - at - 1));
      columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  void end_column(std::size_t at) {
    const std::size_t behind = columns_.size() - at - 1;
    if (behind != 0) draw(repeated("| ", at) + repeated(" /", behind));
    columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  std::vector<std::string> columns_;
  std::vector<GraphRow> rows_;
};

}  // namespace

std::vector<GraphRow> graph_of(std::vector<VersionInfo> versions) {
  std::map<std::string, std::uint64_t> orders;  // of snapshots
  for (const VersionInfo& v : versions) {
    if (!v.is_branch) orders.emplace(v.name, v.order);
  }
  const auto parent_of = [&](const VersionInfo& v) {
    const auto found = orders.find(v.parent);
    const bool older = found != orders.end() && (v.is_branch || found->second < v.order);
    return older ? v.parent : std::string();
  };
  Drawing drawing;
  std::multimap<std::string, VersionInfo> heads;  // by their parent snapshots
  for (VersionInfo& v : versions) {
    if (v.is_branch) {
      heads.emplace(parent_of(v), std::move(v));
      continue;
    }
    const auto [from, to] = heads.equal_range(v.name);
    for (auto head = from; head != to; ++head) drawing.add(std::move(head->second), v.name);
    const std::string parent = parent_of(v);
    drawing.add(std::move(v), parent);
  }
  const auto [from, to] = heads.equal_range("");
  for (auto head = from; head != to; ++head) drawing.add(std::move(head->second), "");
  return drawing.take();
}

}  // namespace vellum::cli
