// store/signature/tree_update.hpp: the hash tree of a version, from that of an earlier one or from
// nothing.
//
// The cost follows the changed pages: each one's tree pages are read and computed again, one for each
// stored level.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/signature/hash_tree.hpp"
#include "format/working_set.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

using TreeNodes = std::array<format::TreeHash, format::kNodesPerTreePage>;
static_assert(sizeof(TreeNodes) == format::kPageBytes);

// The version with the pages of its tree, which are beyond the region's end.
std::shared_ptr<PageSource> open_with_tree(PackStore& store, const format::Version& version,
                                           const std::string& label);

// Whether there are pages of a tree, which a larger region would show as content.
bool has_tree(PackStore& store, const format::Version& version);

// Called for each page of the tree that changes: ascending, for pages of one level.
using VisitTreePage =
    std::function<void(unsigned level, std::uint64_t number, const TreeNodes& nodes)>;

// A stored tree, and the root that a signature states for it.
struct StoredTree {
  const PageSource& source;  // has its pages
  std::uint64_t region_bytes = 0;
  format::TreeHash root{};
};

// Whoever can write a store can write the pages of its trees. A page is therefore compared with its
// node in the page above before it is used, and the top one with the root.
class TreeUpdate {
 public:
  // Over zeros only.
  TreeUpdate(std::uint64_t region_bytes, VisitTreePage visit);
  // REQUIRES: the region of `before` is not larger.
  TreeUpdate(const StoredTree& before, std::uint64_t region_bytes, VisitTreePage visit);

  // REQUIRES: the pages ascend.
  void set(format::PageNumber page, const format::TreeHash& stored_leaf);
  // Sets the leaves of this range of `now`, where they may differ.
  void set_content(const PageSource& now, const format::PageRange& range);
  // The root. nullopt: a page that was needed is not of the tree with the root before; what was visited
  // means nothing. Called once.
  std::optional<format::TreeHash> finish();

 private:
  struct Level {
    bool open = false;
    std::uint64_t number = 0;  // of the page
    TreeNodes nodes, before;   // before: as it is stored, unchecked
  };
  Level& at(unsigned level, std::uint64_t number);
  void open(unsigned level, std::uint64_t number);
  void close(unsigned level);
  void use_checked(unsigned level, std::uint64_t number);
  std::uint64_t set_zeros(format::PageNumber page, std::uint64_t count);

  const std::optional<StoredTree> before_;
  const std::uint64_t pages_;
  const unsigned depth_, top_;
  const VisitTreePage visit_;
  std::array<Level, format::kStoredLevels> levels_;  // above an open page, all are open
  bool is_forged_ = false;
  format::TreeHash root_{};
};

// The root by the stored leaves alone.
format::TreeHash root_of_leaves(const PageSource& with_tree, std::uint64_t region_bytes);
// The root by the content alone. `visit`: all pages of the tree that are not zero.
format::TreeHash root_of_content(const PageSource& content, std::uint64_t region_bytes,
                                 const VisitTreePage& visit = nullptr);
// A node by the pages of the tree, unchecked.
format::TreeHash stored_node(const PageSource& with_tree, unsigned height, std::uint64_t index);

}  // namespace vellum::store
