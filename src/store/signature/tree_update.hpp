// store/signature/tree_update.hpp: the hash tree of a version, from that of an earlier one or from
// nothing.
//
// The cost follows the changed pages: a hash for each level above them. A tree page that is not kept in
// memory is read and checked first, which costs as many hashes as it has nodes.
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
#include "store/signature/tree_page.hpp"

namespace vellum::store {

// The version with the pages of its tree, which are beyond the region's end.
std::shared_ptr<PageSource> open_with_tree(PackStore& store, const format::Version& version,
                                           const std::string& label);

// Whether there are pages of a tree, which a larger region would show as content.
bool has_tree(PackStore& store, const format::Version& version);

struct ChangedTreePage {
  unsigned level = 0;        // stored level
  std::uint64_t number = 0;  // in the level
  std::span<const format::TreeHash, format::kNodesPerTreePage> nodes;
  const TreeNodes* before = nullptr;  // as it is stored; null: not read
};
// Called for each page of the tree that changes: ascending, for pages of one level.
using VisitTreePage = std::function<void(const ChangedTreePage& page)>;

// A page of content whose hash is known.
struct TreeLeaf {
  format::PageNumber page = 0;
  format::TreeHash stored{};  // stored_leaf()
};

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
  // Over zeros only. REQUIRES: `kept` is empty.
  TreeUpdate(std::uint64_t region_bytes, VisitTreePage visit, KeptTree* kept = nullptr);
  // Takes the pages in `kept` as they are. REQUIRES: the region of `before` is not larger; `kept` has
  // pages of the tree before, and is cleared unless the new tree is stored.
  TreeUpdate(const StoredTree& before, std::uint64_t region_bytes, VisitTreePage visit,
             KeptTree* kept = nullptr);

  // REQUIRES: the pages ascend.
  void set(format::PageNumber page, const format::TreeHash& stored_leaf);
  // Sets the leaves of this range of `now`, where they may differ.
  void set_content(const PageSource& now, const format::PageRange& range);
  // The same, but where a page has a leaf, that one counts. Takes the leaves up to the range's end
  // off `leaves`, which ascend.
  void set_content(const PageSource& now, const format::PageRange& range,
                   std::span<const TreeLeaf>& leaves);
  // The root. nullopt: a page that was needed is not of the tree with the root before; what was visited
  // means nothing. Called once.
  std::optional<format::TreeHash> finish();

 private:
  struct Level {
    bool open = false;
    std::uint64_t number = 0;  // of the page
    std::unique_ptr<TreePage> page;
    TreeNodes before;  // as it is stored, unchecked
  };
  Level& at(unsigned level, std::uint64_t number);
  void open(unsigned level, std::uint64_t number);
  void close(unsigned level);
  format::TreeHash root_of_page(unsigned level);
  void use_checked(unsigned level, std::uint64_t number);
  std::uint64_t set_zeros(format::PageNumber page, std::uint64_t count);

  const std::optional<StoredTree> before_;
  const std::uint64_t pages_;
  const unsigned depth_, top_;
  const VisitTreePage visit_;
  KeptTree* const kept_;
  std::array<Level, format::kStoredLevels> levels_;  // above an open page, all are open
  bool is_forged_ = false;
  format::TreeHash root_{};
};

// The root by the stored leaves alone.
format::TreeHash root_of_leaves(const PageSource& with_tree, std::uint64_t region_bytes);
// The root by the content alone, but for the pages of the leaves. `visit`: all pages of the tree that
// are not zero. REQUIRES: `kept` is empty.
format::TreeHash root_of_content(const PageSource& content, std::uint64_t region_bytes,
                                 const VisitTreePage& visit = nullptr,
                                 std::span<const TreeLeaf> leaves = {}, KeptTree* kept = nullptr);
// A node by the pages of the tree, unchecked.
format::TreeHash stored_node(const PageSource& with_tree, unsigned height, std::uint64_t index);

}  // namespace vellum::store
