// store/signature/tree_page.hpp: a page of a stored hash tree with the nodes between it and the page
// above, and the pages that a signer keeps.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <span>
#include <unordered_map>

#include "format/signature/hash_tree.hpp"

namespace vellum::store {

using TreeNodes = std::array<format::TreeHash, format::kNodesPerTreePage>;
static_assert(sizeof(TreeNodes) == format::kPageBytes);

// Nodes as they are stored: a subtree of zeros is 32 zero bytes. A changed node costs one hash a level.
class TreePage {
 public:
  std::span<const format::TreeHash, format::kNodesPerTreePage> nodes() const noexcept {
    return std::span(hashes_).last<format::kNodesPerTreePage>();
  }
  const format::TreeHash& node(std::size_t index) const noexcept { return nodes()[index]; }
  void set(std::size_t index, const format::TreeHash& stored) noexcept;
  // Sets the first nodes.
  void load(std::span<const format::TreeHash> stored) noexcept;
  // The root over the first `count` nodes, a power of two. `height`: of the nodes, always the same.
  const format::TreeHash& root(std::size_t count, unsigned height);

 private:
  // A heap: the root over all is 1, the children of i are 2 i and 2 i + 1.
  std::array<format::TreeHash, 2 * format::kNodesPerTreePage> hashes_{};
  std::bitset<format::kNodesPerTreePage> is_stale_;
};

// The pages that a signer has computed and written itself: it neither reads nor checks them again.
class KeptTree {
 public:
  // Of 64 MiB, for 4 GiB of region. Further ones are read and checked each time.
  static constexpr std::size_t kMaxPages = 8192;

  // Null: it is not kept. Otherwise it must be put back.
  std::unique_ptr<TreePage> take(format::PageNumber page);
  void put(format::PageNumber page, std::unique_ptr<TreePage> nodes);
  void clear() noexcept { pages_.clear(); }
  std::size_t size() const noexcept { return pages_.size(); }

 private:
  std::unordered_map<format::PageNumber, std::unique_ptr<TreePage>> pages_;
};

}  // namespace vellum::store
