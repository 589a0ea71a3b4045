// store/image/write_intent.hpp: slots of an image that may differ from the head after a crash.
//
// The file branches/<name>/image.touched (docs/format.md) is a write-intent map. A slot is marked
// durably before a page of it is written to the image, and unmarked some time after the image was
// synced. A leftover mark costs a comparison during crash recovery, nothing else.
//
// Threads: one call at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/file.hpp"
#include "format/image_state.hpp"
#include "format/types.hpp"

namespace vellum::store {

inline constexpr std::uint64_t kWriteIntentRangePages =
    format::kWriteIntentRangeBytes / format::kPageBytes;

class WriteIntent {
 public:
  // Reads the file. Slots that it does not describe, or not credibly, count as marked.
  WriteIntent(std::unique_ptr<base::File> file, const format::Uuid& store_id,
              std::uint64_t branch_id);

  bool touched(format::PageNumber page) const noexcept;
  // Unmarks all slots, and covers a region of `pages`. Durable on return.
  void reset(format::PageNumber pages);
  // Unmarks all slots without a sync: if the write is lost, they stay marked. REQUIRES: the
  // image is synced.
  void forget();
  // Marks the slots of these pages, ascending. Durable on return; cheap if they are already marked.
  void mark(std::span<const format::PageNumber> pages);

 private:
  void mark_in_memory(format::PageNumber page);
  void write(std::size_t sector);
  void write_changed();

  std::unique_ptr<base::File> file_;
  format::Uuid store_id_;
  std::uint64_t branch_id_;
  std::vector<format::TouchedSector> sectors_;
  std::vector<bool> credible_, changed_;  // by sector; changed: the file does not have it yet
};

}  // namespace vellum::store
