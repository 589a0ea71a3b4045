// base/bytes/word_strides.hpp: a filter that makes arrays of regular structures compressible.
//
// It subtracts from each 8-byte word the word `stride` words before it. Adjacent nodes of an
// allocator have counters and pointers that grow by the same amount from node to node. The words
// have nothing in common that a compressor could use, but their differences repeat ("delta filter",
// as in PNG, HDF5 and xz; the stride is the size of a node).
#pragma once

#include <cstddef>
#include <span>

namespace vellum::base {

inline constexpr std::size_t kMaxStrideWords = 32;
// The search covers structures of at most 128 bytes.
inline constexpr std::size_t kMaxFoundStrideWords = 16;

// The stride at which differences repeat most often; 0: they hardly repeat. Equal words gain
// nothing and do not count.
std::size_t regular_stride(std::span<const std::byte> words) noexcept;

// The stride at which words resemble each other most, in all but their low bytes, or 1.
std::size_t similar_stride(std::span<const std::byte> words) noexcept;

// REQUIRES: 1 <= stride_words <= kMaxStrideWords. The first `stride_words` words and the bytes
// after the last whole word are not changed. Sums undo differences. Neither allocates.
void take_differences(std::span<const std::byte> words, std::span<std::byte> differences,
                      std::size_t stride_words) noexcept;  // REQUIRES: sizes equal, no overlap
void sum_differences(std::span<std::byte> words, std::size_t stride_words) noexcept;

}  // namespace vellum::base
