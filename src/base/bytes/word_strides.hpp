// base/bytes/word_strides.hpp: a filter that makes arrays of regular structures compressible.
//
// It subtracts from each 8-byte word the word `stride` words before it. Nodes that an allocator has
// laid out in a row hold counters and pointers that grow by the same amount from node to node. The
// words have nothing in common for a compressor to find, but their differences repeat ("delta
// filter", as in PNG, HDF5 and xz; the stride is the size of a node).
#pragma once

#include <cstddef>
#include <span>

namespace vellum::base {

inline constexpr std::size_t kMaxStrideWords = 32;
// The search covers structures of at most 128 bytes.
inline constexpr std::size_t kMaxFoundStrideWords = 16;

// The stride at which differences repeat most often; 0: hardly anywhere. Places where the words
// themselves are alike gain nothing and do not count.
std::size_t regular_stride(std::span<const std::byte> words) noexcept;

// The stride at which words resemble each other most, in all but their low bytes, or 1.
std::size_t similar_stride(std::span<const std::byte> words) noexcept;

// REQUIRES: 1 <= stride_words <= kMaxStrideWords. The remainder after the last whole word stays as
// it is, and so do the first `stride_words` words. Sums undo differences. Neither allocates.
void take_differences(std::span<const std::byte> words, std::span<std::byte> differences,
                      std::size_t stride_words) noexcept;  // REQUIRES: sizes equal, no overlap
void sum_differences(std::span<std::byte> words, std::size_t stride_words) noexcept;

}  // namespace vellum::base
