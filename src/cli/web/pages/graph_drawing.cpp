// cli/web/pages/graph_drawing.cpp: the graph of versions as a picture.
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cli/history/markup.hpp"
#include "cli/names/listing.hpp"
#include "cli/web/pages/html.hpp"
#include "cli/web/pages/pages.hpp"

namespace vellum::cli {
namespace {

constexpr std::size_t kLaneColors = 6;  // .lane0 to .lane5 in the style sheet
constexpr std::size_t kLaneWidth = 18, kRowHeight = 48, kTopMargin = 11, kSideMargin = 12;
constexpr std::size_t kRem = 16;  // of these units: the picture grows with the text beside it
constexpr unsigned kHeadRadius = 6, kSnapshotRadius = 4;

struct GraphPosition {
  std::size_t x = 0, y = 0, lane = 0;
};

class Picture {
 public:
  explicit Picture(const std::vector<GraphRow>& rows) {
    for (const GraphRow& row : rows) {
      if (row.version) add(*row.version);
    }
    for (const GraphRow& row : rows) {
      if (row.version) draw(*row.version, row.parent);
    }
  }

  std::string take() const {
    const std::size_t width = lanes_.size() * kLaneWidth + kSideMargin + kHeadRadius;
    const std::size_t height = places_.size() * kRowHeight;
    return fmt::format(
        "<p class=\"legend\">{}</p>\n<div class=\"graph\"><div class=\"lanes\"><svg "
        "xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"The graph of versions\" "
        "viewBox=\"0 0 {} {}\" width=\"{}rem\" height=\"{}rem\">\n{}{}</svg></div>\n",
        legend_, width, height, in_rem(width), in_rem(height), lines_, dots_);
  }

 private:
  static std::size_t lane_color(std::size_t lane) { return lane % kLaneColors; }
  static double in_rem(std::size_t units) {
    return static_cast<double>(units) / static_cast<double>(kRem);
  }

  // The newer the first version of a branch, the further left its lane.
  void add(const VersionInfo& v) {
    const auto [at, is_new] = lanes_.emplace(v.branch, lanes_.size());
    const std::size_t lane = at->second;
    if (is_new) {
      legend_ +=
          fmt::format(R"(<span class="lane{}">{}</span> )", lane_color(lane), in_markup(v.branch));
    }
    const std::size_t row = places_.size();
    const std::size_t y = kTopMargin + row * kRowHeight;
    places_.emplace(v.name, GraphPosition{kLaneWidth * (lane + 1), y, lane});
    dots_in_lane_[lane].insert(y);
  }

  void draw(const VersionInfo& v, const std::string& parent) {
    const GraphPosition& place = places_.at(v.name);
    const auto older = places_.find(parent);
    if (older != places_.end()) draw_line(place, older->second);
    // The row has the same link: Tab does not stop at both.
    dots_ += fmt::format(
        R"(<a tabindex="-1" href="{0}"><circle class="lane{1}{2}" cx="{3}" cy="{4}" r="{5}"><title>{6}</title></circle></a>)"
        "\n",
        in_markup(version_address(v.name)), lane_color(place.lane), v.is_branch ? " head" : "",
        place.x, place.y, v.is_branch ? kHeadRadius : kSnapshotRadius,
        in_markup(v.name + ": " + first_line(v.message)));
  }

  bool is_free_between(const GraphPosition& from, const GraphPosition& to) const {
    const std::set<std::size_t>& dots = dots_in_lane_.at(from.lane);
    return from.lane != to.lane || *dots.upper_bound(from.y) >= to.y;
  }

  // Follows the younger version's lane down to the row above the older one, and there changes to
  // its lane; it passes the dots between two versions of one lane.
  void draw_line(const GraphPosition& from, const GraphPosition& to) {
    if (!is_free_between(from, to)) {
      lines_ += fmt::format(R"(<path class="lane{0}" d="M{1} {2}C{3} {2} {3} {4} {1} {4}"/>)"
                            "\n",
                            lane_color(from.lane), from.x, from.y, from.x - kLaneWidth, to.y);
      return;
    }
    lines_ += fmt::format(R"(<path class="lane{0}" d="M{1} {2}V{3}C{1} {4} {5} {4} {5} {6}"/>)"
                          "\n",
                          lane_color(from.lane), from.x, from.y, to.y - kRowHeight,
                          to.y - kRowHeight / 2, to.x, to.y);
  }

  std::map<std::string, std::size_t> lanes_;     // by branch
  std::map<std::string, GraphPosition> places_;  // by version
  std::map<std::size_t, std::set<std::size_t>> dots_in_lane_;
  std::string legend_, lines_, dots_;
};

std::string row_facts(const VersionInfo& v) {
  return in_markup(fmt::format("{}, {}, {} added, {}, {}", utc_time(shown_time(v)),
                               counted(v.pages_changed, "page"), human_bytes(v.bytes_added),
                               human_bytes(v.file_bytes), kind_name(v)));
}

std::string link_to_choose(const std::string& name) {
  return link_to(".?from=" + in_query(name) + "#" + in_query(name), "compare");
}

// A link that compares with the chosen version: the older one, further down, is the first.
std::string link_to_compare(const std::string& name, const std::string& chosen, bool is_older) {
  return is_older ? link_to_diff(name, chosen) : link_to_diff(chosen, name);
}

std::string list_markup(const std::vector<GraphRow>& rows, const std::string& chosen) {
  std::string markup = "<ol class=\"versions\">\n";
  bool is_past_chosen = false;
  for (const GraphRow& row : rows) {
    if (!row.version) continue;
    const VersionInfo& v = *row.version;
    std::string links;
    if (chosen.empty()) {
      links = link_to_choose(v.name) +
              (row.parent.empty() ? "" : " " + link_to_diff(row.parent, v.name));
    } else if (v.name == chosen) {
      is_past_chosen = true;
    } else {
      links = link_to_compare(v.name, chosen, is_past_chosen);
    }
    markup += fmt::format(
        "<li id=\"{}\"><div>{} <span>{}</span></div><div>{} <span "
        "class=\"faint\">{}</span></div></li>\n",
        in_query(v.name), link_to_version(v.name), in_markup(first_line(v.message)), links,
        row_facts(v));
  }
  return markup + "</ol></div>\n";
}

}  // namespace

std::string graph_markup(const std::vector<GraphRow>& rows, const std::string& chosen) {
  return Picture(rows).take() + list_markup(rows, chosen);
}

}  // namespace vellum::cli
