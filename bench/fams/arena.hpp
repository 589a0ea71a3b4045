// bench/fams/arena.hpp: memory for structures: a range at a fixed address, allocated from its start
// to its end. All of its state is in the range.
#pragma once

#include "store.hpp"

namespace fams {

struct ArenaHead {
  std::uint64_t used_bytes;  // 0: never used
  void* root;
  void* released;  // a list of blocks of one size; the first word of each points to the next
};
inline constexpr std::size_t kArenaAlignment = 64;

inline std::uint64_t arena_bytes(const Size& size) {
  if (size.shape == Shape::scattered) return size.scattered_bytes + 4096;
  // The b-tree's nodes are at least 3 keys in 832 bytes; the hash map has up to 2 buckets a key.
  return (std::uint64_t{1} << 20) + size.keys * 320;
}

// Reporter: has stores(address, bytes). It must be a type of one translation unit (in an unnamed
// namespace): differently compiled code then has different symbols.
template <typename Reporter>
class Arena {
 public:
  static constexpr bool kWholeNodes = false;
  Arena(void* base, std::uint64_t size_bytes)
      : head_(static_cast<ArenaHead*>(base)), size_bytes_(size_bytes) {}

  bool is_fresh() const { return head_->used_bytes == 0; }
  void format() {
    Reporter::stores(head_, sizeof(ArenaHead));
    *head_ = ArenaHead{kArenaAlignment, nullptr, nullptr};
  }

  void* allocate(std::size_t bytes) {
    Reporter::stores(head_, sizeof(ArenaHead));
    void* block = head_->released;
    if (block != nullptr) {
      head_->released = *static_cast<void**>(block);
    } else {
      bytes = (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
      if (bytes > size_bytes_ - head_->used_bytes) throw std::runtime_error("the arena is full");
      block = reinterpret_cast<char*>(head_) + head_->used_bytes;
      head_->used_bytes += bytes;
    }
    Reporter::stores(block, bytes);
    return block;
  }
  // REQUIRES: from then on, all allocations are of that size.
  void release(void* block, std::size_t) {
    stores(block, sizeof(void*));
    Reporter::stores(head_, sizeof(ArenaHead));
    *static_cast<void**>(block) = head_->released;
    head_->released = block;
  }
  void stores(const void* address, std::size_t bytes) { Reporter::stores(address, bytes); }
  void* root() const { return head_->root; }
  void set_root(void* root) {
    Reporter::stores(head_, sizeof(ArenaHead));
    head_->root = root;
  }

 private:
  ArenaHead* head_;
  std::uint64_t size_bytes_;
};

}  // namespace fams
