// vellum/heap/open_heaps.hpp: the heaps that a process has open for writing, and their regions.
//
// An allocator has only its own address. Here it finds the region to grow, and its name.
#ifndef VELLUM_HEAP_OPEN_HEAPS_HPP
#define VELLUM_HEAP_OPEN_HEAPS_HPP

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <vellum/error.hpp>
#include <vellum/heap/mutex.hpp>
#include <vellum/region.hpp>

namespace vellum {

// A heap is full and cannot grow. what() names it.
class HeapFull : public Error {
 public:
  explicit HeapFull(const std::string& message) : Error(Errc::out_of_memory, message) {}
};

namespace detail {

struct OpenHeap {
  const void* segment;
  std::shared_ptr<Region> region;
  bool grows;  // by itself
};
// Guarded by HeapMutex, as all that follows.
inline std::vector<OpenHeap>& open_heaps() {
  static std::vector<OpenHeap> heaps;
  return heaps;
}

// nullptr: no heap at this address grows by itself.
inline Region* growing_region_of(const void* segment) {
  const auto& heaps = open_heaps();
  const auto heap = std::find_if(heaps.begin(), heaps.end(), [&](const OpenHeap& candidate) {
    return candidate.segment == segment && candidate.grows && candidate.region->valid();
  });
  return heap == heaps.end() ? nullptr : heap->region.get();
}

// Makes the region of the heap at `segment` larger by at least `least_bytes`: doubles it, or adds
// `wanted_bytes` if that is more, within its capacity. Returns its new size; 0: it does not grow.
inline std::uint64_t grow_region_of(const void* segment, std::uint64_t least_bytes,
                                    std::uint64_t wanted_bytes) {
  constexpr std::uint64_t kSlackBytes = 64 << 10;  // the blocks' own headers, alignment
  Region* const region = growing_region_of(segment);
  if (region == nullptr) {
    return 0;
  }
  const std::uint64_t now = region->size_bytes();
  const std::uint64_t room = region->capacity_bytes() - now;
  if (room < kSlackBytes || room - kSlackBytes < least_bytes) {
    return 0;
  }
  const std::uint64_t more = std::max(now, std::min(room, wanted_bytes) + kSlackBytes);
  try {
    region->grow(now + std::min(room, more));
  } catch (const Error&) {
    return 0;  // the allocation throws HeapFull
  }
  return region->size_bytes();
}

[[noreturn]] inline void refuse_allocation(const void* segment, std::uint64_t bytes) {
  const HeapGuard guard(HeapMutex::of_process());
  std::string message = "heap";
  for (const OpenHeap& heap : open_heaps()) {
    if (heap.segment == segment && heap.region->valid()) {
      message += " in region '" + heap.region->name() + "' of " +
                 std::to_string(heap.region->size_bytes()) + " bytes";
      break;
    }
  }
  throw HeapFull(message + ": no room for " + std::to_string(bytes) + " bytes");
}

}  // namespace detail
}  // namespace vellum

#endif  // VELLUM_HEAP_OPEN_HEAPS_HPP
