// store/branch/checkpoint/committed_pages.hpp: pages of the current commit that its caller has in memory.
//
// A checkpoint needs whole pages for which the commit has only deltas. Reading such a page from the
// packs takes a lookup, a decompression and the application of deltas. A region usually has the page
// in memory, as a base copy, so the checkpoint asks the region first. This is the only call from the
// store into the layer above.
#pragma once

#include <cstddef>

#include "format/wire/types.hpp"

namespace vellum::store {

// Implemented by the caller of Commit::finish(): a region, over its base copies. Called only while
// finish() runs. Threads: that of finish() and those of the store's pool, several at a time.
class CommittedPages {
 public:
  // Copies the page's content after the current commit to `out`, unless that is null. False: the
  // content is not in memory, or was evicted, and the store reads it itself.
  virtual bool copy_page(format::PageNumber page, std::byte* out) const = 0;

 protected:
  ~CommittedPages() = default;
};

}  // namespace vellum::store
