#include "store/signature/tree_page.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace vellum::store {

using format::kNodesPerTreePage;
using format::TreeHash;

namespace {

// As it is stored, from its children as they are stored.
TreeHash parent_of(const TreeHash& left, const TreeHash& right, unsigned height) {
  if (left == format::kZeroSubtree && right == format::kZeroSubtree) return format::kZeroSubtree;
  return format::node_hash(format::actual_node(left, height), format::actual_node(right, height));
}

}  // namespace

void TreePage::set(std::size_t index, const TreeHash& stored) noexcept {
  assert(index < kNodesPerTreePage);
  hashes_[kNodesPerTreePage + index] = stored;
  for (std::size_t i = (kNodesPerTreePage + index) / 2; i != 0; i /= 2) is_stale_.set(i);
}

void TreePage::load(std::span<const TreeHash> stored) noexcept {
  assert(stored.size() <= kNodesPerTreePage);
  std::ranges::copy(stored, hashes_.begin() + kNodesPerTreePage);
  is_stale_.set();
}

const TreeHash& TreePage::root(std::size_t count, unsigned height) {
  assert(std::has_single_bit(count) && count <= kNodesPerTreePage);
  const std::size_t top = kNodesPerTreePage / count;
  for (std::size_t first = kNodesPerTreePage / 2; first >= top; first /= 2, ++height) {
    for (std::size_t i = first; i < first + first / top; ++i) {
      if (!is_stale_[i]) continue;
      hashes_[i] = parent_of(hashes_[2 * i], hashes_[2 * i + 1], height);
      is_stale_.reset(i);
    }
  }
  return hashes_[top];
}

std::unique_ptr<TreePage> KeptTree::take(format::PageNumber page) {
  auto at = pages_.find(page);
  return at == pages_.end() ? nullptr : std::exchange(at->second, nullptr);
}

// An entry stays when its page is taken.
void KeptTree::put(format::PageNumber page, std::unique_ptr<TreePage> nodes) {
  if (const auto at = pages_.find(page); at != pages_.end()) {
    at->second = std::move(nodes);
  } else if (pages_.size() < kMaxPages) {
    pages_.emplace(page, std::move(nodes));
  }
}

}  // namespace vellum::store
