// vellum/heap/span_map.hpp: which parts of a heap are spans.
//
// A bit for each 16 KiB. The first 64 MiB have their bits in the map itself; each doubling of the
// heap after that has a part of its own, as long as all parts before. No part ever moves, so a
// thread may query without a lock while another one adds.
#ifndef VELLUM_HEAP_SPAN_MAP_HPP
#define VELLUM_HEAP_SPAN_MAP_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vellum/heap/span.hpp>

namespace vellum::detail {

// Stored in the region, as its parts are: `heap` is always the heap's start.
class SpanMap {
 public:
  bool contains(const char* heap, SpanNumber span) const {
    const BitPlace place = place_of(span);
    const Word* const words = words_of(heap, place.part);
    return words != nullptr &&
           (words[place.word].load(std::memory_order_relaxed) >> place.bit & 1) != 0;
  }

  // The bytes of the part that is missing before `span` can be added; 0: none is.
  std::size_t missing_bytes(const char* heap, SpanNumber span) const {
    const BitPlace place = place_of(span);
    return words_of(heap, place.part) != nullptr ? 0 : words_in(place.part) * sizeof(Word);
  }
  // REQUIRES: `memory` has missing_bytes(), and belongs to the map from now on.
  void add_part(const char* heap, SpanNumber span, void* memory) {
    const BitPlace place = place_of(span);
    Word* const words = static_cast<Word*>(memory);
    for (std::size_t i = 0; i < words_in(place.part); ++i) {
      ::new (static_cast<void*>(words + i)) Word(0);
    }
    const char* const at = static_cast<const char*>(memory);
    parts_[place.part - 1].store(static_cast<std::uint64_t>(at - heap), std::memory_order_release);
  }

  // REQUIRES: missing_bytes() is 0.
  void insert(char* heap, SpanNumber span) { word_of(heap, span) |= bit_of(span); }
  void erase(char* heap, SpanNumber span) { word_of(heap, span) &= ~bit_of(span); }

  // False: a part is not in the heap. For data that was read from a store.
  bool fits(std::uint64_t heap_bytes) const {
    for (std::uint32_t part = 1; part <= kParts; ++part) {
      const std::uint64_t place = parts_[part - 1].load(std::memory_order_relaxed);
      const std::uint64_t bytes = words_in(part) * sizeof(Word);
      if (place != 0 &&
          (place % sizeof(Word) != 0 || place > heap_bytes || heap_bytes - place < bytes)) {
        return false;
      }
    }
    return true;
  }

 private:
  using Word = std::atomic<std::uint64_t>;
  static constexpr std::uint32_t kFirstWords = 64;  // of 4,096 spans
  static constexpr std::uint32_t kParts = 20;       // 64 TiB with the first

  struct BitPlace {
    std::uint32_t part;  // 0: first_
    std::size_t word;
    std::uint32_t bit;
  };
  static BitPlace place_of(SpanNumber span) {
    const std::uint32_t word = span / 64;
    if (word < kFirstWords) {
      return {0, word, span % 64};
    }
    const auto top_bit = static_cast<std::uint32_t>(31 - __builtin_clz(word));
    return {top_bit - 5, word - (std::uint32_t{1} << top_bit), span % 64};
  }
  static constexpr std::size_t words_in(std::uint32_t part) {
    return std::size_t{kFirstWords} << (part == 0 ? 0 : part - 1);
  }

  const Word* words_of(const char* heap, std::uint32_t part) const {
    if (part == 0) {
      return first_;
    }
    const std::uint64_t place = parts_[part - 1].load(std::memory_order_acquire);
    return place == 0 ? nullptr : reinterpret_cast<const Word*>(heap + place);
  }
  Word& word_of(char* heap, SpanNumber span) {
    const BitPlace place = place_of(span);
    return const_cast<Word*>(words_of(heap, place.part))[place.word];
  }
  static std::uint64_t bit_of(SpanNumber span) { return std::uint64_t{1} << (span % 64); }

  Word first_[kFirstWords] = {};
  Word parts_[kParts] = {};  // offsets in the heap; 0: none
};

}  // namespace vellum::detail

#endif  // VELLUM_HEAP_SPAN_MAP_HPP
