// store/packs/record/record_front.hpp: the first read of a record. Internal to RecordCache.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/threads/handler_lock.hpp"
#include "store/packs/record/record_frames.hpp"

namespace vellum::store {

inline constexpr std::size_t kFrontBytes = 64u << 10;

// The first bytes of a record, read before its length is known: for pages, as many as the last
// records had. Reading the header first would wait for the disk twice, and the kernel would take it
// for sequential reading and read several times as much as needed.
struct Front {
  base::HandlerLock lock;
  std::byte* bytes = nullptr;
  std::size_t length = 0;
  std::span<const std::byte> read() const noexcept { return {bytes, length}; }
};

// The length to read: the longest recent record, decaying by a sixteenth each time.
class FrontLength {
 public:
  std::size_t from(std::uint64_t offset_bytes) const noexcept {
    const std::uint64_t length = length_.load(std::memory_order_relaxed);
    return static_cast<std::size_t>(whole_pages(offset_bytes + length) - offset_bytes);
  }
  // A record longer than a front counts as 0: the rest of it is read directly into place.
  void note(std::size_t record_bytes) noexcept {
    const std::size_t length = length_.load(std::memory_order_relaxed);
    assert(length <= kFrontBytes);
    const std::size_t wanted = record_bytes > kFrontBytes ? 0 : record_bytes;
    const std::size_t next = std::max(wanted, length - length / 16);
    if (next != length) length_.store(next, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::size_t> length_{4096};
};

}  // namespace vellum::store
