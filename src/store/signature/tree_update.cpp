#include "store/signature/tree_update.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace vellum::store {

using format::kLevelsPerTreePage;
using format::kNodesPerTreePage;
using format::kPageBytes;
using format::PageNumber;
using format::TreeHash;

namespace {

constexpr std::size_t kPagesAtOnce = 64;

TreeNodes read_nodes(const PageSource& source, unsigned level, std::uint64_t number) {
  TreeNodes out;
  source.read(format::tree_page(level, number), 1, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

}  // namespace

std::shared_ptr<PageSource> open_with_tree(PackStore& store, const format::Version& version,
                                           const std::string& label) {
  format::Version whole = version;
  whole.region_bytes = format::kMaxRegionBytes;
  whole.file_bytes.reset();
  return PageSource::open(store, whole, {}, label);
}

// With another depth, the first page of each level counts as changed: its subtree may have got a
// parent.
TreeUpdate::TreeUpdate(const PageSource* before, std::uint64_t before_bytes,
                       std::uint64_t region_bytes, VisitTreePage visit)
    : before_(before),
      pages_(format::pages_in(region_bytes)),
      depth_(format::tree_depth(region_bytes)),
      visit_(std::move(visit)) {
  assert(region_bytes <= format::kMaxSignedRegionBytes);
  if (before_ == nullptr || format::tree_depth(before_bytes) != depth_) open(0, 0);
}

void TreeUpdate::set(PageNumber page, const TreeHash& stored_leaf) {
  assert(page < pages_);
  set_node(0, page, stored_leaf);
}

void TreeUpdate::set_node(unsigned level, std::uint64_t index, const TreeHash& node) {
  Level& l = levels_[level];
  const std::uint64_t number = index / kNodesPerTreePage;
  if (l.open && l.number != number) close(level);
  if (!l.open) open(level, number);
  l.nodes[index % kNodesPerTreePage] = node;
}

void TreeUpdate::open(unsigned level, std::uint64_t number) {
  Level& l = levels_[level];
  assert(!l.open && (number == 0 || number > l.number));
  l.open = true;
  l.number = number;
  l.before = before_ == nullptr ? TreeNodes{} : read_nodes(*before_, level, number);
  l.nodes = l.before;
}

void TreeUpdate::close(unsigned level) {
  Level& l = levels_[level];
  l.open = false;
  if (visit_ && l.nodes != l.before) visit_(level, l.number, l.nodes);
  const unsigned height = level * kLevelsPerTreePage, top = format::top_level(depth_);
  if (level < top) {
    set_node(level + 1, l.number, format::stored_subtree(l.nodes, height));
    return;
  }
  const std::size_t nodes = std::size_t{1} << (depth_ - height);
  root_ = format::stored_subtree(std::span(l.nodes).first(nodes), height);
  has_root_ = true;
}

TreeHash TreeUpdate::finish() {
  const unsigned top = format::top_level(depth_);
  for (unsigned level = 0; level <= top; ++level) {
    if (levels_[level].open) close(level);
  }
  if (!has_root_) {
    open(top, 0);
    close(top);
  }
  return format::actual_node(root_, depth_);
}

// Returns the number of pages that are done. Whole tree pages that were zero stay so.
std::uint64_t TreeUpdate::set_zeros(PageNumber page, std::uint64_t count) {
  if (before_ == nullptr) return count;
  if (page % kNodesPerTreePage == 0 && count >= kNodesPerTreePage) {
    const auto whole = static_cast<std::size_t>(count / kNodesPerTreePage);
    const std::size_t still =
        before_->zeros_from(format::tree_page(0, page / kNodesPerTreePage), whole);
    if (still != 0) return std::min(still, whole) * kNodesPerTreePage;
  }
  set(page, format::kZeroSubtree);
  return 1;
}

void TreeUpdate::set_content(const PageSource& now, const format::PageRange& range) {
  std::vector<std::byte> content(kPagesAtOnce * kPageBytes);
  const PageNumber end = std::min(pages_, range.first + range.count);
  for (PageNumber page = range.first; page < end;) {
    const std::uint64_t left = end - page;
    const std::uint64_t zeros = std::min(left, std::uint64_t{now.zeros_from(page, left)});
    if (zeros != 0) {
      page += set_zeros(page, zeros);
      continue;
    }
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPagesAtOnce));
    now.read(page, count, content.data());
    for (std::size_t i = 0; i < count; ++i) {
      const auto bytes = std::span(content).subspan(i * kPageBytes).first<kPageBytes>();
      set(page + i, format::stored_leaf(bytes));
    }
    page += count;
  }
}

TreeHash stored_root(const PageSource& with_tree, std::uint64_t region_bytes) {
  return TreeUpdate(&with_tree, region_bytes, region_bytes, nullptr).finish();
}

TreeHash root_of_content(const PageSource& content, std::uint64_t region_bytes,
                         const VisitTreePage& visit) {
  TreeUpdate update(nullptr, 0, region_bytes, visit);
  update.set_content(content, {0, format::pages_in(region_bytes)});
  return update.finish();
}

TreeHash stored_node(const PageSource& with_tree, unsigned height, std::uint64_t index) {
  const unsigned level = height / kLevelsPerTreePage, above = height % kLevelsPerTreePage;
  const std::uint64_t first = index << above;
  const TreeNodes nodes = read_nodes(with_tree, level, first / kNodesPerTreePage);
  const auto below = std::span(nodes).subspan(first % kNodesPerTreePage, std::size_t{1} << above);
  const TreeHash node = format::stored_subtree(below, level * kLevelsPerTreePage);
  return format::actual_node(node, height);
}

}  // namespace vellum::store
