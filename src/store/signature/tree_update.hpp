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

// Called for each page of the tree that changes: ascending, for pages of one level.
using VisitTreePage =
    std::function<void(unsigned level, std::uint64_t number, const TreeNodes& nodes)>;

class TreeUpdate {
 public:
  // `before`: has the pages of the tree over `before_bytes`; null: over zeros only. A region does not
  // shrink.
  TreeUpdate(const PageSource* before, std::uint64_t before_bytes, std::uint64_t region_bytes,
             VisitTreePage visit);

  // REQUIRES: the pages ascend.
  void set(format::PageNumber page, const format::TreeHash& stored_leaf);
  // Sets the leaves of this range of `now`, where they may differ.
  void set_content(const PageSource& now, const format::PageRange& range);
  // The root. Called once.
  format::TreeHash finish();

 private:
  struct Level {
    bool open = false;
    std::uint64_t number = 0;  // of the page
    TreeNodes nodes, before;
  };
  void set_node(unsigned level, std::uint64_t index, const format::TreeHash& node);
  void open(unsigned level, std::uint64_t number);
  void close(unsigned level);
  std::uint64_t set_zeros(format::PageNumber page, std::uint64_t count);

  const PageSource* const before_;
  const std::uint64_t pages_;
  const unsigned depth_;
  const VisitTreePage visit_;
  std::array<Level, format::kStoredLevels> levels_;
  format::TreeHash root_{};
  bool has_root_ = false;
};

// The root by the pages of the tree alone.
format::TreeHash stored_root(const PageSource& with_tree, std::uint64_t region_bytes);
// The root by the content alone. `visit`: all pages of the tree that are not zero.
format::TreeHash root_of_content(const PageSource& content, std::uint64_t region_bytes,
                                 const VisitTreePage& visit = nullptr);
// A node by the pages of the tree.
format::TreeHash stored_node(const PageSource& with_tree, unsigned height, std::uint64_t index);

}  // namespace vellum::store
