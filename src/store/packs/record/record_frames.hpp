// store/packs/record/record_frames.hpp: the frames for decoded records. Internal to RecordCache.
//
// Only make() allocates, because the fault handler uses the rest.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/round_up.hpp"
#include "base/threads/handler_lock.hpp"
#include "format/records/record.hpp"
#include "format/records/translation.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

// Room in front of a frame's raw bytes for the header and hash of an uncompressed record, whose
// payload is then read directly into place.
inline constexpr std::size_t kHeadroomBytes = 4096;
inline constexpr std::size_t kFramesPerSet = 8;

constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
  return base::round_up(bytes, format::kPageBytes);
}

// Control words of a frame; its bytes are in the Reservation. All but `fingerprint` and `used`
// belong to the holder of `lock`.
struct CacheFrame {
  base::HandlerLock lock;
  std::atomic<std::uint64_t> fingerprint{0};  // hash of the frame's reference; 0: empty
  std::atomic<std::uint64_t> used{0};
  format::RecordRef ref;
  format::RecordHeader header;
  std::span<const format::SlotRange> dropped;  // slots of the record that gc freed
  std::byte* raw = nullptr;  // of pages or deltas; kHeadroomBytes are in front of it
  std::byte* parsed = nullptr;
  std::size_t parsed_count = 0;
};

// The capacity of a frame.
struct FrameShape {
  std::size_t raw_bytes;  // 0: none, and no headroom
  std::size_t items, item_bytes;
  std::size_t items_at() const noexcept {
    return raw_bytes == 0 ? 0 : kHeadroomBytes + whole_pages(raw_bytes);
  }
  std::size_t frame_bytes() const noexcept { return items_at() + whole_pages(items * item_bytes); }
};

// Frames of one kind. A record may be in either of two sets, and the least recently used frame of
// both is the victim. Chains of deltas use some hundred records at once. With one set per record,
// even one twice as large, some sets would have more records than frames while others are empty,
// and the records in use would evict each other ("the power of two choices", Mitzenmacher 2001).
struct FrameClass {
  FrameShape shape{};
  std::unique_ptr<CacheFrame[]> frames;
  std::size_t sets = 0;
  std::size_t frames_per_set = 0;
  std::atomic<std::uint64_t> clock{0};

  void make(const FrameShape& of_each, std::size_t at_most) {
    assert(frames == nullptr);
    shape = of_each;
    frames_per_set = std::min(at_most, kFramesPerSet);
    sets = frames_per_set == 0 ? 0 : at_most / frames_per_set;
    frames = std::make_unique<CacheFrame[]>(count());
  }
  std::size_t count() const noexcept { return sets * frames_per_set; }
  std::size_t bytes() const noexcept { return count() * shape.frame_bytes(); }
  // Assigns each frame its bytes. Returns the end of the last frame's bytes.
  std::byte* place(std::byte* at) noexcept {
    for (std::size_t i = 0; i < count(); ++i, at += shape.frame_bytes()) {
      frames[i].raw = shape.raw_bytes == 0 ? nullptr : at + kHeadroomBytes;
      frames[i].parsed = at + shape.items_at();
    }
    return at;
  }
  // The frame of the record, or null. Another thread may reuse the frame until the caller locks it.
  // Calls `pass` for the other frames of the record's sets.
  template <typename Pass>
  CacheFrame* find(std::uint64_t fingerprint, const Pass& pass) noexcept {
    if (sets == 0) return nullptr;
    for (const std::uint64_t set : {fingerprint % sets, fingerprint / sets % sets}) {
      CacheFrame* const first = &frames[static_cast<std::size_t>(set) * frames_per_set];
      for (CacheFrame* frame = first; frame != first + frames_per_set; ++frame) {
        if (frame->fingerprint.load(std::memory_order_relaxed) == fingerprint) return frame;
        pass(*frame);
      }
    }
    return nullptr;
  }
  CacheFrame* find(std::uint64_t fingerprint) noexcept {
    return find(fingerprint, [](const CacheFrame&) noexcept {});
  }
  // The frame of the record, or the victim to reuse for it.
  // REQUIRES: the class has frames.
  CacheFrame& pick(std::uint64_t fingerprint) noexcept {
    assert(sets != 0);
    CacheFrame* oldest = nullptr;
    std::uint64_t oldest_use = UINT64_MAX;
    CacheFrame* const found = find(fingerprint, [&](CacheFrame& frame) noexcept {
      const std::uint64_t use = frame.used.load(std::memory_order_relaxed);
      if (oldest != nullptr && use >= oldest_use) return;
      oldest = &frame;
      oldest_use = use;
    });
    assert(found != nullptr || oldest != nullptr);
    return found != nullptr ? *found : *oldest;
  }
  void touch(CacheFrame& frame) noexcept {
    // This is not exact under contention and need not be.
    const std::uint64_t now = clock.load(std::memory_order_relaxed) + 1;
    clock.store(now, std::memory_order_relaxed);
    frame.used.store(now, std::memory_order_relaxed);
  }
};

}  // namespace vellum::store
