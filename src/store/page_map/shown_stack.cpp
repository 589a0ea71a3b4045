#include "store/page_map/shown_stack.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace vellum::store {

using format::PageKind;
using format::PageNumber;

void ShownStack::report(const Segment& segment, const Node& node, bool shows) {
  const bool has_below = node.kind == PageKind::delta && node.below != nullptr;
  change_({node.id, has_below ? node.below->id : kNothing, segment.first, segment.count, shows});
}

void ShownStack::report_chain(const Segment& segment, bool shows) {
  for (const Node* node = segment.top; node != nullptr; node = node->below) {
    report(segment, *node, shows);
  }
}

void ShownStack::cut_out(PageNumber first, std::uint64_t count, std::vector<Segment>& out) {
  const PageNumber end = first + count;
  auto at = pages_.lower_bound(first);
  if (at != pages_.begin()) {
    const auto before = std::prev(at);
    const PageNumber before_end = before->first + before->second.count;
    if (before_end > first) {  // it starts before these pages, and may end after them
      before->second.count = first - before->first;
      at = pages_.emplace_hint(at, first, Pages{before_end - first, before->second.top});
    }
  }
  while (at != pages_.end() && at->first < end) {
    const PageNumber at_end = at->first + at->second.count;
    out.push_back({at->first, std::min(end, at_end) - at->first, at->second.top});
    const Pages rest{at_end > end ? at_end - end : 0, at->second.top};
    at = pages_.erase(at);
    if (rest.count != 0) pages_.emplace_hint(at, end, rest);
    if (rest.count != 0) return;
  }
}

void ShownStack::put(const Segment& segment) {
  assert(segment.count >= 1 && segment.top != nullptr);
  Segment whole = segment;
  auto at = pages_.lower_bound(segment.first);
  if (at != pages_.end() && at->second.top == segment.top &&
      at->first == segment.first + segment.count) {
    whole.count += at->second.count;
    at = pages_.erase(at);
  }
  if (at != pages_.begin()) {
    Pages& before = std::prev(at)->second;
    if (before.top == segment.top && std::prev(at)->first + before.count == segment.first) {
      before.count += whole.count;
      return;
    }
  }
  pages_.emplace_hint(at, whole.first, Pages{whole.count, whole.top});
}

void ShownStack::place(const Item& item, Layer& layer) {
  assert(item.count >= 1 && (item.kind != PageKind::delta || item.count == 1));
  assert(layer.nodes.size() < layer.nodes.capacity());
  const std::size_t before = layer.hidden.size();
  cut_out(item.page, item.count, layer.hidden);
  const auto hidden = std::span(layer.hidden).subspan(before);
  const Node* below = nullptr;
  for (const Segment& s : hidden) {
    if (s.top->kind != PageKind::zero) nonzero_pages_ -= s.count;
    if (item.kind == PageKind::delta) {
      below = s.top;  // a delta is of one page
    } else {
      report_chain(s, false);
    }
  }
  layer.nodes.push_back({item.id, item.kind, below});
  const Segment mine{item.page, item.count, &layer.nodes.back()};
  put(mine);
  if (item.kind != PageKind::zero) nonzero_pages_ += mine.count;
  report(mine, *mine.top, true);
  layer.placed.push_back({item.page, item.count, static_cast<std::uint32_t>(hidden.size())});
}

void ShownStack::push(std::span<const Item> run) {
  Layer& layer = layers_.emplace_back();
  layer.nodes.reserve(run.size());  // segments point to them
  layer.placed.reserve(run.size());
  // A run lists a chain newest first, and the oldest is placed first.
  for (std::size_t first = 0; first < run.size();) {
    std::size_t end = first + 1;
    while (end < run.size() && run[end].page == run[first].page) ++end;
    for (std::size_t i = end; i-- > first;) place(run[i], layer);
    first = end;
  }
}

void ShownStack::remove(const Placed& placed, Layer& layer) {
  std::vector<Segment> mine;
  cut_out(placed.first, placed.count, mine);
  for (const Segment& s : mine) {
    if (s.top->kind != PageKind::zero) nonzero_pages_ -= s.count;
    report(s, *s.top, false);
  }
  assert(!mine.empty() && placed.segments <= layer.hidden.size());
  const bool delta = mine.front().top->kind == PageKind::delta;
  for (std::uint32_t i = 0; i < placed.segments; ++i) {
    const Segment& s = layer.hidden.back();
    if (s.top->kind != PageKind::zero) nonzero_pages_ += s.count;
    put(s);
    if (!delta) report_chain(s, true);
    layer.hidden.pop_back();
  }
}

void ShownStack::pop() {
  assert(!layers_.empty());
  Layer& layer = layers_.back();
  for (auto placed = layer.placed.rbegin(); placed != layer.placed.rend(); ++placed) {
    remove(*placed, layer);
  }
  layers_.pop_back();
}

}  // namespace vellum::store
