// store/stream/write_intent.hpp: ranges of an image that may differ from the head after a crash.
//
// The file branches/<name>/image.touched (docs/format.md) is a write-intent bitmap. A range's bit
// is set durably before a page of the range is written to the image, and cleared some time after
// the image was synced. A bit that is still set costs only a comparison during crash recovery.
//
// Threads: one call at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/files/file.hpp"
#include "format/image_state.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

inline constexpr std::uint64_t kWriteIntentRangePages =
    format::kWriteIntentRangeBytes / format::kPageBytes;

class WriteIntent {
 public:
  // Reads the file. Ranges in missing or invalid sectors count as touched.
  WriteIntent(std::unique_ptr<base::File> file, const format::Uuid& store_id,
              std::uint64_t branch_id);

  bool touched(format::PageNumber page) const noexcept;
  // Clears all bits, and covers a region of `pages`. Durable on return.
  void reset(format::PageNumber pages);
  // Clears all bits without a sync. If the write is lost, they remain set. REQUIRES: the image is
  // synced.
  void forget();
  // Sets the bits of these pages, ascending. Durable on return; cheap if they are already set.
  void touch(std::span<const format::PageNumber> pages);

 private:
  void touch_in_memory(format::PageNumber page);
  void write(std::size_t sector);
  void write_changed();

  std::unique_ptr<base::File> file_;
  format::Uuid store_id_;
  std::uint64_t branch_id_;
  std::vector<format::TouchedSector> sectors_;
  std::vector<bool> credible_, changed_;  // by sector; changed: not yet written to the file
};

}  // namespace vellum::store
