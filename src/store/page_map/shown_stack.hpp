// store/page_map/shown_stack.hpp: the entries that show in a growing and shrinking stack of runs.
//
// ShownPages computes this for one version, at the cost of all its entries. Versions of a line share
// all but their newest runs, so a step from one version to the next costs less: the entries of the
// runs that differ, and one step for each part of an older entry that they hide.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::store {

class ShownStack {
 public:
  static constexpr std::uint32_t kNothing = UINT32_MAX;

  struct Item {
    format::PageNumber page = 0;
    std::uint32_t count = 0;
    std::uint32_t id = 0;  // the caller's, for one entry or shared by several entries
    format::PageKind kind = format::PageKind::zero;
  };
  // Pages of an item that begin or cease to show.
  struct Change {
    std::uint32_t id;
    std::uint32_t below;  // of a delta: the item below it in the chain, or kNothing
    format::PageNumber first;
    std::uint64_t count;
    bool shows;
  };
  using ChangeFn = std::function<void(const Change&)>;

  explicit ShownStack(ChangeFn change) : change_(std::move(change)) {}

  // REQUIRES: a run's entries in their order (format/records/page_map.hpp).
  void push(std::span<const Item> run);
  // Removes the run that was pushed last. REQUIRES: depth() != 0.
  void pop();
  std::size_t depth() const noexcept { return layers_.size(); }
  // Pages whose newest entry is not zero.
  std::uint64_t nonzero_pages() const noexcept { return nonzero_pages_; }

 private:
  // An item as a member of a page's chain. Lives as long as its layer.
  struct Node {
    std::uint32_t id;
    format::PageKind kind;
    const Node* below;  // null: none, or none that shows
  };
  // Pages with the same chain.
  struct Segment {
    format::PageNumber first;
    std::uint64_t count;
    const Node* top;
  };
  // The place of an item, and how many segments it replaced.
  struct Placed {
    format::PageNumber first;
    std::uint32_t count, segments;
  };
  struct Layer {
    std::vector<Node> nodes;
    std::vector<Placed> placed;
    std::vector<Segment> hidden;  // by the items, in the order of `placed`
  };
  struct Pages {
    std::uint64_t count;
    const Node* top;
  };
  using Map = std::map<format::PageNumber, Pages>;  // by first page

  void place(const Item& item, Layer& layer);
  void remove(const Placed& placed, Layer& layer);
  // Moves the segments that cover these pages, cut to them, to `out`.
  void cut_out(format::PageNumber first, std::uint64_t count, std::vector<Segment>& out);
  // Joins neighbours with the same chain. REQUIRES: no segment covers these pages.
  void put(const Segment& segment);
  void report(const Segment& segment, const Node& node, bool shows);
  void report_chain(const Segment& segment, bool shows);

  ChangeFn change_;
  std::vector<Layer> layers_;
  Map pages_;
  std::uint64_t nonzero_pages_ = 0;
};

}  // namespace vellum::store
