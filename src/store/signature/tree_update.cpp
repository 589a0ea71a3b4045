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

bool has_tree(PackStore& store, const format::Version& version) {
  const auto source = open_with_tree(store, version, store.path());
  return source->zeros_from(format::kFirstTreePage, format::kMaxTreePages) < format::kMaxTreePages;
}

TreeUpdate::TreeUpdate(std::uint64_t region_bytes, VisitTreePage visit, KeptTree* kept)
    : pages_(format::pages_in(region_bytes)),
      depth_(format::tree_depth(region_bytes)),
      top_(format::top_level(depth_)),
      visit_(std::move(visit)),
      kept_(kept) {
  assert(region_bytes <= format::kMaxSignedRegionBytes);
  assert(kept == nullptr || kept->size() == 0);
}

// With another depth, the first page of each level counts as changed: its subtree may have got a
// parent.
TreeUpdate::TreeUpdate(const StoredTree& before, std::uint64_t region_bytes, VisitTreePage visit,
                       KeptTree* kept)
    : before_(before),
      pages_(format::pages_in(region_bytes)),
      depth_(format::tree_depth(region_bytes)),
      top_(format::top_level(depth_)),
      visit_(std::move(visit)),
      kept_(kept) {
  assert(before.region_bytes <= region_bytes && region_bytes <= format::kMaxSignedRegionBytes);
  if (format::tree_depth(before.region_bytes) != depth_) open(0, 0);
}

void TreeUpdate::set(PageNumber page, const TreeHash& stored_leaf) {
  assert(page < pages_);
  at(0, page / kNodesPerTreePage).page->set(page % kNodesPerTreePage, stored_leaf);
}

TreeUpdate::Level& TreeUpdate::at(unsigned level, std::uint64_t number) {
  Level& l = levels_[level];
  if (l.open && l.number != number) close(level);
  if (!l.open) open(level, number);
  return l;
}

void TreeUpdate::open(unsigned level, std::uint64_t number) {
  Level& l = levels_[level];
  assert(!l.open && (number == 0 || number > l.number));
  if (level < top_) at(level + 1, number / kNodesPerTreePage);
  l.open = true;
  l.number = number;
  l.page = kept_ != nullptr ? kept_->take(format::tree_page(level, number)) : nullptr;
  if (l.page != nullptr) {
    std::ranges::copy(l.page->nodes(), l.before.begin());
    return;
  }
  l.page = std::make_unique<TreePage>();
  l.before = {};
  if (!before_.has_value()) return;
  l.before = read_nodes(before_->source, level, number);
  use_checked(level, number);
}

// Takes the nodes that belong to the tree before. Others there count as zero.
void TreeUpdate::use_checked(unsigned level, std::uint64_t number) {
  Level& l = levels_[level];
  const unsigned depth = format::tree_depth(before_->region_bytes), top = format::top_level(depth);
  const unsigned height = level * kLevelsPerTreePage;
  const bool is_there = level < top ? number >> (depth - height - kLevelsPerTreePage) == 0
                                    : level == top && number == 0;
  if (!is_there) return;
  if (level == top) {
    const std::size_t count = std::size_t{1} << (depth - height);
    l.page->load(std::span(l.before).first(count));
    const TreeHash& node = l.page->root(count, height);
    is_forged_ |= format::actual_node(node, depth) != before_->root;
    return;
  }
  l.page->load(l.before);
  const TreeHash& node = levels_[level + 1].page->node(number % kNodesPerTreePage);
  is_forged_ |= l.page->root(kNodesPerTreePage, height) != node;
}

// The root of the tree, or of the page's subtree.
TreeHash TreeUpdate::root_of_page(unsigned level) {
  const unsigned height = level * kLevelsPerTreePage;
  const std::size_t nodes = level < top_ ? kNodesPerTreePage : std::size_t{1} << (depth_ - height);
  return levels_[level].page->root(nodes, height);
}

void TreeUpdate::close(unsigned level) {
  if (level > 0 && levels_[level - 1].open) close(level - 1);
  Level& l = levels_[level];
  l.open = false;
  const auto nodes = l.page->nodes();
  if (visit_ && !std::ranges::equal(nodes, l.before))
    visit_({level, l.number, nodes, before_.has_value() ? &l.before : nullptr});
  const TreeHash root = root_of_page(level);
  if (kept_ != nullptr) kept_->put(format::tree_page(level, l.number), std::move(l.page));
  if (level == top_) {
    root_ = root;
    return;
  }
  const Level& above = levels_[level + 1];
  assert(above.open && above.number == l.number / kNodesPerTreePage);
  above.page->set(l.number % kNodesPerTreePage, root);
}

std::optional<TreeHash> TreeUpdate::finish() {
  at(top_, 0);
  close(top_);
  if (is_forged_) return std::nullopt;
  return format::actual_node(root_, depth_);
}

// Returns the number of pages that are done. Subtrees that were zero stay so.
std::uint64_t TreeUpdate::set_zeros(PageNumber page, std::uint64_t count) {
  if (!before_.has_value()) return count;
  for (unsigned level = top_; level > 0; --level) {
    const std::uint64_t leaves = std::uint64_t{1} << (level * kLevelsPerTreePage);
    if (page % leaves != 0 || count < leaves) continue;
    const std::uint64_t index = page / leaves;
    const TreePage& above = *at(level, index / kNodesPerTreePage).page;
    if (above.node(index % kNodesPerTreePage) == format::kZeroSubtree) return leaves;
  }
  set(page, format::kZeroSubtree);
  return 1;
}

void TreeUpdate::set_content(const PageSource& now, const format::PageRange& range) {
  std::vector<std::byte> content(kPagesAtOnce * kPageBytes);
  const PageNumber end = std::min(pages_, range.first + range.count);
  for (PageNumber page = range.first; page < end && !is_forged_;) {
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

void TreeUpdate::set_content(const PageSource& now, const format::PageRange& range,
                             std::span<const TreeLeaf>& leaves) {
  const PageNumber end = range.first + range.count;
  PageNumber next = range.first;
  while (!leaves.empty() && leaves.front().page < end) {
    const TreeLeaf& leaf = leaves.front();
    if (leaf.page > next) set_content(now, {next, leaf.page - next});
    set(leaf.page, leaf.stored);
    next = std::max(next, leaf.page + 1);
    leaves = leaves.subspan(1);
  }
  if (next < end) set_content(now, {next, end - next});
}

TreeHash root_of_leaves(const PageSource& with_tree, std::uint64_t region_bytes) {
  TreeUpdate update(region_bytes, nullptr);
  const std::uint64_t pages = format::pages_in(region_bytes);
  const std::uint64_t end = (pages + kNodesPerTreePage - 1) / kNodesPerTreePage;
  for (std::uint64_t number = 0; number < end;) {
    const std::uint64_t zeros = with_tree.zeros_from(format::tree_page(0, number), end - number);
    number += zeros;
    if (zeros != 0) continue;
    const TreeNodes nodes = read_nodes(with_tree, 0, number);
    const std::uint64_t first = number * kNodesPerTreePage;
    for (std::size_t i = 0; i < nodes.size() && first + i < pages; ++i)
      update.set(first + i, nodes[i]);
    ++number;
  }
  return *update.finish();
}

TreeHash root_of_content(const PageSource& content, std::uint64_t region_bytes,
                         const VisitTreePage& visit, std::span<const TreeLeaf> leaves,
                         KeptTree* kept) {
  TreeUpdate update(region_bytes, visit, kept);
  update.set_content(content, {0, format::pages_in(region_bytes)}, leaves);
  return *update.finish();
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
