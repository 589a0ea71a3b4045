// region/copies/scratch.hpp: buffers for page-ins and evictions, which allocate nothing.
#pragma once

#include <sched.h>

#include <cstddef>

#include "base/handler_lock.hpp"
#include "base/reserve.hpp"
#include "region/copies/spill_file.hpp"
#include "region/paging/sizes.hpp"

namespace vellum::region {

struct Scratch {
  base::HandlerLock lock;
  base::Reservation memory;
  std::byte* old = nullptr;     // one chunk: committed content
  std::byte* own = nullptr;     // one chunk: the program's content
  std::byte* record = nullptr;  // one record of the spill file
  std::byte* batch = nullptr;   // for a SpillFile::Batch of one chunk's pages
  std::byte* place = nullptr;   // one chunk of address space, for pages that are moved away
};

class ScratchSet {
 public:
  // Throws Errc::out_of_memory.
  explicit ScratchSet(std::size_t chunk_pages) {
    const std::size_t chunk_bytes = chunk_pages * kPageBytes;
    const std::size_t batch_bytes = SpillFile::Batch::bytes(chunk_pages);
    for (Scratch& s : all_) {
      s.memory = base::Reservation(3 * chunk_bytes + batch_bytes + SpillFile::Batch::kRecordBytes);
      s.old = s.memory.data();
      s.own = s.old + chunk_bytes;
      s.place = s.own + chunk_bytes;
      s.batch = s.place + chunk_bytes;
      s.record = s.batch + batch_bytes;
    }
  }

  // Locks a free one, best the one that this processor has used last, or waits for that one. The
  // caller unlocks it. Any context.
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
