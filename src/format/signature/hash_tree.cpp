#include "format/signature/hash_tree.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <vector>

#include "base/memory/zeros.hpp"

namespace vellum::format {
namespace {

constexpr std::byte kLeafPrefix{0}, kNodePrefix{1};

}  // namespace

PageNumber tree_page(unsigned stored_level, std::uint64_t number) noexcept {
  assert(stored_level < kStoredLevels);
  PageNumber first = kFirstTreePage;
  // Each level has room for the nodes of the largest region.
  for (unsigned level = 0; level < stored_level; ++level) {
    first += PageNumber{1} << (kMaxTreeDepth - kLevelsPerTreePage * (level + 1));
  }
  return first + number;
}

unsigned tree_depth(std::uint64_t region_bytes) noexcept {
  const std::uint64_t pages = pages_in(region_bytes);
  return pages <= 1 ? 0 : static_cast<unsigned>(std::bit_width(pages - 1));
}

TreeHash leaf_hash(PageContent page) {
  std::array<std::byte, 1 + kPageBytes> bytes;
  bytes[0] = kLeafPrefix;
  std::memcpy(bytes.data() + 1, page.data(), page.size());
  return base::sha256(bytes);
}

TreeHash node_hash(const TreeHash& left, const TreeHash& right) {
  std::array<std::byte, 1 + 2 * sizeof(TreeHash)> bytes;
  bytes[0] = kNodePrefix;
  std::memcpy(bytes.data() + 1, left.data(), left.size());
  std::memcpy(bytes.data() + 1 + left.size(), right.data(), right.size());
  return base::sha256(bytes);
}

const TreeHash& zero_hash(unsigned height) {
  static const auto hashes = [] {
    std::array<TreeHash, kMaxTreeDepth + 1> out;
    const std::array<std::byte, kPageBytes> zeros{};
    out[0] = leaf_hash(zeros);
    for (std::size_t i = 1; i < out.size(); ++i) out[i] = node_hash(out[i - 1], out[i - 1]);
    return out;
  }();
  assert(height < hashes.size());
  return hashes[height];
}

TreeHash stored_leaf(PageContent page) {
  return base::is_zero(page) ? kZeroSubtree : leaf_hash(page);
}

const TreeHash& actual_node(const TreeHash& stored, unsigned height) {
  return stored == kZeroSubtree ? zero_hash(height) : stored;
}

TreeHash stored_subtree(std::span<const TreeHash> nodes, unsigned height) {
  assert(std::has_single_bit(nodes.size()) && nodes.size() <= kNodesPerTreePage);
  std::array<TreeHash, kNodesPerTreePage> level;
  std::copy(nodes.begin(), nodes.end(), level.begin());
  for (std::size_t count = nodes.size(); count > 1; count /= 2, ++height) {
    for (std::size_t i = 0; i < count; i += 2) {
      const TreeHash &left = level[i], &right = level[i + 1];
      const bool zero = left == kZeroSubtree && right == kZeroSubtree;
      level[i / 2] =
          zero ? kZeroSubtree : node_hash(actual_node(left, height), actual_node(right, height));
    }
  }
  return level[0];
}

}  // namespace vellum::format
