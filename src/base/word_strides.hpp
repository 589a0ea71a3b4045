// base/word_strides.hpp: a filter that makes arrays of regular structures compress.
//
// Each 8-byte word minus the word `stride` words before it. Nodes that an allocator has laid out
// one after the other hold counters and pointers that grow by the same amount from node to node:
// their differences repeat, and a compressor, which finds nothing alike in the words themselves,
// finds nothing else in the differences ("delta filter", as in PNG, HDF5 and xz; the stride is the
// size of a node).
#pragma once

#include <cstddef>
#include <span>

namespace vellum::base {

inline constexpr std::size_t kMaxStrideWords = 32;
// Structures that are looked for have 128 bytes at most.
inline constexpr std::size_t kMaxFoundStrideWords = 16;

// The stride at which differences repeat most often, or 0: hardly anywhere. Where words are alike
// themselves nothing is gained, and that does not count.
std::size_t regular_stride(std::span<const std::byte> words) noexcept;

// The stride at which words resemble each other most, in all but their low bytes, or 1.
std::size_t similar_stride(std::span<const std::byte> words) noexcept;

// REQUIRES: 1 <= stride_words <= kMaxStrideWords. What is left behind the last whole word stays as
// it is, and so do the first `stride_words` words. Sums undo differences. Neither allocates.
void take_differences(std::span<const std::byte> words, std::span<std::byte> differences,
                      std::size_t stride_words) noexcept;  // REQUIRES: sizes equal, no overlap
void sum_differences(std::span<std::byte> words, std::size_t stride_words) noexcept;

}  // namespace vellum::base
