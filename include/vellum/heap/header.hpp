// vellum/heap/header.hpp: the header at the start of a region with a heap.
#ifndef VELLUM_HEAP_HEADER_HPP
#define VELLUM_HEAP_HEADER_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vellum::detail {

// Boost's segment follows it.
struct HeapHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t layout;
  std::uint64_t segment_bytes;
  std::atomic<std::uint64_t> classes;  // the offset of HeapClasses; 0: there are none
  std::uint64_t reserved[4];
};
static_assert(sizeof(HeapHeader) == 64 && sizeof(std::size_t) == 8,
              "the heap is for 64-bit machines");

constexpr char kHeapMagic[8] = {'V', 'L', 'M', 'H', 'E', 'A', 'P', '\n'};
constexpr std::uint32_t kHeapWithoutClasses = 1;
constexpr std::uint32_t kHeapWithClasses = 2;

}  // namespace vellum::detail

#endif  // VELLUM_HEAP_HEADER_HPP
