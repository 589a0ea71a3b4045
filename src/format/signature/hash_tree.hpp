// format/signature/hash_tree.hpp: the hash tree over the pages of a version (docs/format.md, Signed
// versions).
//
// A leaf is the hash of a page's content, so the tree does not depend on where records are. The tree
// is perfect: pages beyond the region's end count as zero, and its depth follows from the region's
// size. Subtrees over zero pages have known hashes, and are not stored.
//
// The nodes of every seventh level are stored as pages of the version's page map, 128 in a page,
// behind all pages that a signed region can have. Programs never see them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/bytes/sha256.hpp"
#include "format/wire/limits.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

using TreeHash = base::Sha256;
using PageContent = std::span<const std::byte, kPageBytes>;

inline constexpr unsigned kLevelsPerTreePage = 7;
inline constexpr std::size_t kNodesPerTreePage = std::size_t{1} << kLevelsPerTreePage;
static_assert(kNodesPerTreePage * sizeof(TreeHash) == kPageBytes);
// The depth of the tree over the largest region.
inline constexpr unsigned kMaxTreeDepth = 34;
inline constexpr unsigned kStoredLevels = 5;
static_assert(kStoredLevels * kLevelsPerTreePage >= kMaxTreeDepth);

// The last page numbers of the largest region are those of the tree: from 2^34 - 2^28.
inline constexpr std::size_t kMaxTreePages = std::size_t{1} << 28;
inline constexpr PageNumber kFirstTreePage = kMaxRegionBytes / kPageBytes - kMaxTreePages;
inline constexpr std::uint64_t kMaxSignedRegionBytes = kFirstTreePage * kPageBytes;

// The page with node 128 `number` of a stored level: level 0 has the leaves, level 1 the roots of
// subtrees over 128 leaves, and so on.
PageNumber tree_page(unsigned stored_level, std::uint64_t number) noexcept;
// The smallest depth of a tree with a leaf for each page.
unsigned tree_depth(std::uint64_t region_bytes) noexcept;
// The stored level whose page 0 has the root's subtree.
constexpr unsigned top_level(unsigned depth) noexcept {
  return depth == 0 ? 0 : (depth - 1) / kLevelsPerTreePage;
}

// SHA-256 of the byte 0 and the page.
TreeHash leaf_hash(PageContent page);
// SHA-256 of the byte 1 and both hashes.
TreeHash node_hash(const TreeHash& left, const TreeHash& right);
// The root of 2^height zero pages.
const TreeHash& zero_hash(unsigned height);

// Nodes are stored with 32 zero bytes in place of the hash of a subtree of zero pages.
inline constexpr TreeHash kZeroSubtree{};
TreeHash stored_leaf(PageContent page);
const TreeHash& actual_node(const TreeHash& stored, unsigned height);
// The root of a subtree, as it is stored, from its 2^n stored nodes of this height.
TreeHash stored_subtree(std::span<const TreeHash> nodes, unsigned height);

}  // namespace vellum::format
