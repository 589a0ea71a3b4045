#include "cli/web/pages.hpp"

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cli/history/markup.hpp"
#include "cli/names/listing.hpp"
#include "cli/web/html.hpp"

namespace vellum::cli {
namespace {

constexpr std::size_t kColors = 6;  // .lane0 to .lane5 in the style sheet
constexpr std::size_t kLaneWidth = 18, kRowHeight = 22, kMargin = 12, kTextWidth = 760;
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
    return fmt::format(
        "<p class=\"legend\">{}</p>\n<div class=\"picture\"><svg "
        "xmlns=\"http://www.w3.org/2000/svg\" "
        "class=\"versions\" role=\"img\" aria-label=\"The graph of versions\" width=\"{}\" "
        "height=\"{}\">\n{}{}</svg></div>\n",
        legend_, text_x() + kTextWidth, places_.size() * kRowHeight + 2 * kMargin, lines_, dots_);
  }

 private:
  static std::size_t lane_color(std::size_t lane) { return lane % kColors; }
  std::size_t text_x() const { return kMargin + (lanes_.size() + 1) * kLaneWidth; }

  // The newer the first version of a branch, the further left its lane.
  void add(const VersionInfo& v) {
    const auto [at, is_new] = lanes_.emplace(v.branch, lanes_.size());
    const std::size_t lane = at->second;
    if (is_new) {
      legend_ +=
          fmt::format(R"(<span class="lane{}">{}</span> )", lane_color(lane), in_markup(v.branch));
    }
    const std::size_t row = places_.size();
    const std::size_t y = kMargin + row * kRowHeight;
    places_.emplace(v.name, GraphPosition{kLaneWidth * (lane + 1), y, lane});
    dots_in_lane_[lane].insert(y);
  }

  void draw(const VersionInfo& v, const std::string& parent) {
    const GraphPosition& place = places_.at(v.name);
    const auto older = places_.find(parent);
    if (older != places_.end()) draw_line(place, older->second);
    dots_ += fmt::format(
        R"(<a href="{0}"><circle class="lane{1}{2}" cx="{3}" cy="{4}" r="{5}"><title>{6}</title></circle></a>)"
        R"(<text x="{7}" y="{8}">{9} <tspan class="faint">{10}</tspan>{11}</text>)"
        "\n",
        in_markup(version_page(v.name)), lane_color(place.lane), v.is_branch ? " head" : "",
        place.x, place.y, v.is_branch ? kHeadRadius : kSnapshotRadius,
        in_markup(v.name + ": " + first_line(v.message)), text_x(), place.y + 4,
        link_to_version(v.name),
        in_markup(fmt::format("{}, {}, {}", utc_time(shown_time(v)),
                              counted(v.pages_changed, "page"), human_bytes(v.bytes_added))),
        older == places_.end() ? "" : " " + link_to_diff(parent, v.name));
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

}  // namespace

std::string graph_svg(const std::vector<GraphRow>& rows) { return Picture(rows).take(); }

}  // namespace vellum::cli
