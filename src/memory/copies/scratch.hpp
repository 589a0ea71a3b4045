// memory/copies/scratch.hpp: buffers for fills and evictions, which allocate nothing.
#pragma once

#include <sched.h>

#include <cassert>
#include <cstddef>
#include <utility>

#include "base/memory/reserve.hpp"
#include "base/threads/handler_lock.hpp"
#include "memory/copies/spill_file.hpp"
#include "memory/paging/sizes.hpp"

namespace vellum::region {

struct Scratch {
  base::HandlerLock lock;
  base::Reservation memory;
  std::byte* old = nullptr;     // one chunk: committed content
  std::byte* own = nullptr;     // one chunk: the program's content
  std::byte* record = nullptr;  // one record of the spill file
  std::byte* batch = nullptr;   // for a SpillFile::Batch of one chunk's pages
  // Address space to which evictions move the pages of kPlaces chunks.
  std::byte* places = nullptr;
  std::size_t places_used = 0, pages_moved = 0;

  static constexpr std::size_t kPlaces = 16, kMaxMoved = 16;
  std::byte* free_place(std::size_t chunk_bytes) const noexcept {
    assert(places_used < kPlaces);
    return places + places_used * chunk_bytes;
  }
  // Pages were moved to the free place, and no thread needs them any more. True: the pages of all
  // places are to be dropped now. Each drop interrupts the other processors, so drops are combined.
  bool note_moved(std::size_t pages) noexcept {
    ++places_used;
    pages_moved += pages;
    return places_used == kPlaces || pages_moved >= kMaxMoved;
  }
  // Returns how many places were used.
  std::size_t note_dropped() noexcept {
    pages_moved = 0;
    return std::exchange(places_used, 0);
  }
};

class ScratchSet {
 public:
  // Throws Errc::out_of_memory.
  explicit ScratchSet(std::size_t chunk_pages) {
    const std::size_t chunk_bytes = chunk_pages * kPageBytes;
    const std::size_t batch_bytes = SpillFile::Batch::bytes(chunk_pages);
    for (Scratch& s : all_) {
      s.memory = base::Reservation((2 + Scratch::kPlaces) * chunk_bytes + batch_bytes +
                                   SpillFile::Batch::kRecordBytes);
      s.old = s.memory.data();
      s.own = s.old + chunk_bytes;
      s.places = s.own + chunk_bytes;
      s.batch = s.places + Scratch::kPlaces * chunk_bytes;
      s.record = s.batch + batch_bytes;
    }
  }

  // Locks a free one, preferably the one that this processor has used last, or waits for that one.
  // The caller unlocks it. Any context.
  Scratch& lock() noexcept {
    const auto start = static_cast<std::size_t>(sched_getcpu());
    for (std::size_t i = 0; i < kCount; ++i) {
      Scratch& s = all_[(start + i) % kCount];
      if (s.lock.try_lock()) return s;
    }
    Scratch& s = all_[start % kCount];
    s.lock.lock();
    return s;
  }

 private:
  static constexpr std::size_t kCount = 8;
  Scratch all_[kCount];
};

}  // namespace vellum::region
