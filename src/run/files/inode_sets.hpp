// run/files/inode_sets.hpp: sets of files by inode, with false positives. They allocate nothing and
// take no lock: an allocator may be the first caller.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vellum::preload {

namespace inode_sets {
template <unsigned bits>
std::size_t bit_of(std::uint64_t inode) noexcept {
  return static_cast<std::size_t>(inode * 0x9e3779b97f4a7c15 >> (64 - bits));
}
}  // namespace inode_sets

// A set that only grows.
class InodeSet {
 public:
  void add(std::uint64_t inode) noexcept {
    const std::size_t bit = inode_sets::bit_of<kBits>(inode);
    words_[bit / 64].fetch_or(1ULL << (bit % 64), std::memory_order_relaxed);
  }
  bool may_have(std::uint64_t inode) const noexcept {
    const std::size_t bit = inode_sets::bit_of<kBits>(inode);
    return (words_[bit / 64].load(std::memory_order_relaxed) >> (bit % 64) & 1) != 0;
  }

 private:
  static constexpr unsigned kBits = 20;
  std::array<std::atomic<std::uint64_t>, (std::size_t{1} << kBits) / 64> words_{};
};

// A set with removal: each file is removed as often as it was added.
class CountedInodeSet {
 public:
  void add(std::uint64_t inode) noexcept { ++counts_[inode_sets::bit_of<kBits>(inode)]; }
  void remove(std::uint64_t inode) noexcept { --counts_[inode_sets::bit_of<kBits>(inode)]; }
  bool may_have(std::uint64_t inode) const noexcept {
    return counts_[inode_sets::bit_of<kBits>(inode)].load(std::memory_order_relaxed) != 0;
  }

 private:
  static constexpr unsigned kBits = 16;
  std::array<std::atomic<std::uint32_t>, std::size_t{1} << kBits> counts_{};
};

}  // namespace vellum::preload
