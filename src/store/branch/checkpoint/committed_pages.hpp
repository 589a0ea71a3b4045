// store/branch/checkpoint/committed_pages.hpp: pages of the commit at hand that its maker has in memory.
//
// A checkpoint needs whole pages where a commit brought only deltas. Reading such a page back from
// the packs means finding it, decompressing it and applying deltas; a region usually has it at hand
// as a base copy. So a commit that ends in a checkpoint asks the region first. This is the one call
// from the store up into the layer above.
#pragma once

#include <cstddef>

#include "format/wire/types.hpp"

namespace vellum::store {

// Implemented by whoever makes commits: a region, over its base copies. Called only while
// Commit::finish() runs, on its thread and on those of the store's pool, several at a time.
class CommittedPages {
 public:
  // Copies the content that the page has after the commit at hand to `out`, unless that is null.
  // False: the content is not in memory, or no longer, and the store reads it back itself.
  virtual bool copy_page(format::PageNumber page, std::byte* out) const = 0;

 protected:
  ~CommittedPages() = default;
};

}  // namespace vellum::store
