// vellum/heap/size_classes.hpp: the sizes that a heap's small blocks have.
//
// Multiples of 16 bytes up to 128, then four to each doubling: a block is at most a fifth larger
// than the requested size. The sizes are stored in regions: they must never change.
#ifndef VELLUM_HEAP_SIZE_CLASSES_HPP
#define VELLUM_HEAP_SIZE_CLASSES_HPP

#include <cstddef>
#include <cstdint>

namespace vellum::detail {

using SizeClass = std::uint32_t;

constexpr std::size_t kLargestClassBytes = 1024;
constexpr SizeClass kSizeClasses = 20;

// The bytes of each class.
constexpr std::uint16_t kClassBytes[kSizeClasses] = {
    16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024};
static_assert(kClassBytes[kSizeClasses - 1] == kLargestClassBytes);

// The smallest class that holds so many bytes. REQUIRES: bytes <= kLargestClassBytes.
inline SizeClass class_of(std::size_t bytes) {
  if (bytes <= 128) {
    return bytes == 0 ? 0 : static_cast<SizeClass>((bytes - 1) / 16);
  }
  const int top_bit = 63 - __builtin_clzll(bytes - 1);
  const std::size_t quarter = ((bytes - 1) >> (top_bit - 2)) & 3;
  return static_cast<SizeClass>(8 + static_cast<std::size_t>(top_bit - 7) * 4 + quarter);
}

}  // namespace vellum::detail

#endif  // VELLUM_HEAP_SIZE_CLASSES_HPP
