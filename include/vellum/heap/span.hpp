// vellum/heap/span.hpp: 16 KiB of a heap that hold blocks of one size.
//
// A bitmap at its start records the used blocks. Blocks have no headers, and a free block is not
// written to. The bitmap is the only record: in every version of the region exactly those blocks
// are in use that the program had allocated at that version.
#ifndef VELLUM_HEAP_SPAN_HPP
#define VELLUM_HEAP_SPAN_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vellum/heap/size_classes.hpp>

namespace vellum::detail {

// Spans start at multiples of kSpanBytes in the region, and have numbers: their offset divided by
// it. The heap's header is at offset 0, so 0 is no span's number.
constexpr std::size_t kSpanBytes = 16 << 10;
using SpanNumber = std::uint32_t;

// Guarded by the lock of its slot, except slot() itself.
class Span {
 public:
  // The span's last bytes are part of the header of Boost's next block.
  static constexpr std::size_t kUsableBytes = kSpanBytes - 8;

  Span(SizeClass size_class, std::uint32_t slot)
      : slot_(static_cast<std::uint16_t>(slot)),
        size_class_(static_cast<std::uint8_t>(size_class)),
        capacity_(static_cast<std::uint16_t>((kUsableBytes - sizeof(Span)) / block_bytes())),
        free_(capacity_) {
    for (std::uint32_t i = capacity(); i < 64 * kWords; ++i) {
      in_use_[i / 64] |= std::uint64_t{1} << (i % 64);  // there is no such block
    }
  }

  // The slot whose lists it is in. It changes only while both slots are locked: check it again
  // after locking a slot.
  std::uint32_t slot() const { return slot_.load(std::memory_order_relaxed); }
  void set_slot(std::uint32_t slot) {
    slot_.store(static_cast<std::uint16_t>(slot), std::memory_order_relaxed);
  }

  SizeClass size_class() const { return size_class_; }
  std::size_t block_bytes() const { return kClassBytes[size_class_]; }
  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t free_blocks() const { return free_; }
  bool is_full() const { return free_ == 0; }
  bool is_empty() const { return free_ == capacity(); }
  // The bytes that are no free block: 0 for an empty span, otherwise with the header.
  std::size_t used_bytes() const { return is_empty() ? 0 : kSpanBytes - free_ * block_bytes(); }

  // REQUIRES: !is_full().
  void* take() {
    while (~in_use_[first_word_] == 0) {
      ++first_word_;
    }
    std::uint64_t& word = in_use_[first_word_];
    const auto bit = static_cast<std::uint32_t>(__builtin_ctzll(~word));
    word |= word + 1;
    --free_;
    return blocks() + (std::size_t{64} * first_word_ + bit) * block_bytes();
  }

  // False: there is no such block, or it is free.
  bool holds(const void* block) const {
    const std::size_t at = place_of(block);
    const std::size_t i = at / block_bytes();
    return at % block_bytes() == 0 && i < capacity() && (in_use_[i / 64] >> (i % 64) & 1) != 0;
  }

  // REQUIRES: holds(block).
  void give_back(const void* block) {
    const auto i = static_cast<std::uint32_t>(static_cast<std::uint32_t>(place_of(block)) /
                                              static_cast<std::uint32_t>(block_bytes()));
    in_use_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    if (i / 64 < first_word_) {
      first_word_ = static_cast<std::uint8_t>(i / 64);
    }
    ++free_;
  }

  // False: something has overwritten the header.
  bool is_sane() const {
    if (size_class_ >= kSizeClasses || first_word_ >= kWords ||
        capacity_ != (kUsableBytes - sizeof(Span)) / block_bytes()) {
      return false;
    }
    std::uint32_t in_use = 0;
    for (const std::uint64_t word : in_use_) {
      in_use += static_cast<std::uint32_t>(__builtin_popcountll(word));
    }
    return in_use + free_ == 64 * kWords;
  }

  SpanNumber next = 0, previous = 0;  // in a list of its slot, or of empty spans

 private:
  static constexpr std::uint32_t kWords = kSpanBytes / 16 / 64;

  std::size_t place_of(const void* block) const {
    return static_cast<std::size_t>(static_cast<const char*>(block) - blocks());
  }
  const char* blocks() const { return reinterpret_cast<const char*>(this + 1); }
  char* blocks() { return reinterpret_cast<char*>(this + 1); }

  std::atomic<std::uint16_t> slot_;
  std::uint8_t size_class_;
  std::uint8_t first_word_ = 0;  // words before it have no free block
  std::uint16_t capacity_;
  std::uint16_t free_;
  std::uint64_t in_use_[kWords] = {};
};
static_assert(sizeof(Span) == 144 && sizeof(Span) % 16 == 0);

}  // namespace vellum::detail

#endif  // VELLUM_HEAP_SPAN_HPP
