// vellum/heap/classes.hpp: a heap's small blocks, by size and by thread.
//
// A span (span.hpp) belongs to one of 64 slots, a thread allocates from the spans of its slot
// (thread_slot.hpp), and any thread frees a block by locking the slot of its span. The record of
// used blocks is in the region, and none of it in the threads: a commit includes it, a rollback
// restores it, and a crash leaks nothing.
//
// A slot lists, for each size, its spans that have a free block; the first one serves allocations.
// A slot without a span takes over a span of a thread that has ended, creates a new one, or takes
// over one of a live thread.
//
// Lock order: HeapMutex before locks of slots.
#ifndef VELLUM_HEAP_CLASSES_HPP
#define VELLUM_HEAP_CLASSES_HPP

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <vellum/heap/size_classes.hpp>
#include <vellum/heap/span.hpp>
#include <vellum/heap/span_map.hpp>
#include <vellum/heap/thread_slot.hpp>

namespace vellum::detail {

enum class SlotsOf { living_threads, ended_threads };

// Stored in the region. REQUIRES: `place` is its offset from the heap's start.
class HeapClasses {
 public:
  explicit HeapClasses(std::uint64_t place) : place_(place) {}

  // ---- Any thread ----

  // nullptr: no span of this thread's slot has a free block.
  void* allocate(SizeClass size_class) {
    const std::uint32_t number = ThreadSlot::of_this_thread();
    const SlotGuard guard(ThreadSlot::lock_of(number));
    Slot& slot = slots_[number];
    const SpanNumber first = slot.first(size_class);
    if (first == 0) {
      return nullptr;
    }
    Span& span = at(first);
    slot.used_bytes -= span.used_bytes();
    void* const block = span.take();
    slot.used_bytes += span.used_bytes();
    if (span.is_full()) {
      unlink(slot, first);
    }
    return block;
  }

  // Moves a span with a free block to this thread's slot. False: there is none.
  bool take_over(SizeClass size_class, SlotsOf from) {
    const std::uint32_t mine = ThreadSlot::of_this_thread();
    const std::uint32_t slots = slots_used_.load(std::memory_order_relaxed);
    for (std::uint32_t theirs = 0; theirs < slots; ++theirs) {
      if (theirs != mine && ThreadSlot::is_taken(theirs) == (from == SlotsOf::living_threads) &&
          slots_[theirs].first(size_class) != 0 && take_over(size_class, mine, theirs)) {
        return true;
      }
    }
    return false;
  }

  // Whether the block belongs to a span. REQUIRES: it is in the heap.
  bool owns(const void* block) const { return map_.contains(heap(), number_of(block)); }
  // REQUIRES: owns(block).
  std::size_t bytes_of(const void* block) const { return at(number_of(block)).block_bytes(); }

  // Returns a span that has become empty and is in no list: for keep_empty().
  // REQUIRES: owns(block).
  Span* deallocate(void* block) {
    const SpanNumber number = number_of(block);
    Span& span = at(number);
    const SlotGuard guard = lock_slot_of(span);
    assert(span.holds(block) && "freed twice, or never allocated");
    Slot& slot = slots_[span.slot()];
    const bool was_full = span.is_full();
    slot.used_bytes -= span.used_bytes();
    span.give_back(block);
    slot.used_bytes += span.used_bytes();
    if (was_full) {
      link(slot, number);
    } else if (span.is_empty() && (span.next != 0 || span.previous != 0)) {
      unlink(slot, number);
      return &span;
    }
    return nullptr;
  }

  // ---- With HeapMutex ----

  // The space of an empty span; nullptr: there is none.
  void* reuse_empty() {
    if (empty_spans_ == 0) {
      return nullptr;
    }
    Span& span = at(empty_spans_);
    empty_spans_ = span.next;
    --spans_;
    map_.erase(heap(), number_of(&span));
    return &span;
  }
  void keep_empty(Span& span) {
    span.next = empty_spans_;
    empty_spans_ = number_of(&span);
  }

  static bool is_place_for_span(const char* heap, const void* memory) {
    return static_cast<std::uint64_t>(static_cast<const char*>(memory) - heap) % kSpanBytes == 0;
  }
  std::size_t missing_map_bytes(const void* memory) const {
    return map_.missing_bytes(heap(), number_of(memory));
  }
  void add_map_part(const void* memory_of_span, void* part) {
    map_.add_part(heap(), number_of(memory_of_span), part);
  }
  // Creates a span of this thread's slot. REQUIRES: is_place_for_span(), no map part is missing.
  void add_span(void* memory, SizeClass size_class) {
    const std::uint32_t mine = ThreadSlot::of_this_thread();
    const SlotGuard guard(ThreadSlot::lock_of(mine));
    ::new (memory) Span(size_class, mine);
    map_.insert(heap(), number_of(memory));
    ++spans_;
    if (slots_used_.load(std::memory_order_relaxed) <= mine) {
      slots_used_.store(mine + 1, std::memory_order_relaxed);
    }
    link(slots_[mine], number_of(memory));
  }

  // The unused bytes of all spans.
  std::uint64_t free_bytes() const {
    std::uint64_t bytes = spans_ * kSpanBytes;
    for (std::uint32_t i = 0; i < kThreadSlots; ++i) {
      const SlotGuard guard(ThreadSlot::lock_of(i));
      bytes -= slots_[i].used_bytes;
    }
    return bytes;
  }

  // Walks all lists. False: something has overwritten them.
  bool is_sane(std::uint64_t heap_bytes) const {
    for (std::uint32_t i = 0; i < kThreadSlots; ++i) {
      const SlotGuard guard(ThreadSlot::lock_of(i));
      for (SizeClass size_class = 0; size_class < kSizeClasses; ++size_class) {
        if (!is_sane(i, size_class, heap_bytes)) {
          return false;
        }
      }
    }
    std::uint64_t empty = 0;
    for (SpanNumber i = empty_spans_; i != 0; i = at(i).next) {
      if (!is_span(i, heap_bytes) || !at(i).is_sane() || !at(i).is_empty() || ++empty > spans_) {
        return false;
      }
    }
    return true;
  }

  // False: not a value that this program writes. For data that was read from a store.
  bool fits(std::uint64_t place, std::uint64_t heap_bytes) const {
    return place_ == place && spans_ <= heap_bytes / kSpanBytes && map_.fits(heap_bytes) &&
           free_bytes() <= spans_ * kSpanBytes;
  }

 private:
  using SlotGuard = std::unique_lock<ThreadSlot::Mutex>;

  struct alignas(128) Slot {
    SpanNumber first(SizeClass size_class) const {
      return firsts[size_class].load(std::memory_order_relaxed);
    }
    void set_first(SizeClass size_class, SpanNumber span) {
      firsts[size_class].store(span, std::memory_order_relaxed);
    }
    std::uint64_t used_bytes = 0;
    std::atomic<SpanNumber> firsts[kSizeClasses] = {};
  };

  const char* heap() const { return reinterpret_cast<const char*>(this) - place_; }
  char* heap() { return reinterpret_cast<char*>(this) - place_; }
  SpanNumber number_of(const void* at) const {
    return static_cast<SpanNumber>(
        static_cast<std::uint64_t>(static_cast<const char*>(at) - heap()) / kSpanBytes);
  }
  Span& at(SpanNumber span) { return *reinterpret_cast<Span*>(heap() + span * kSpanBytes); }
  const Span& at(SpanNumber span) const {
    return *reinterpret_cast<const Span*>(heap() + span * kSpanBytes);
  }

  static SlotGuard lock_slot_of(const Span& span) {
    for (;;) {
      const std::uint32_t slot = span.slot();
      SlotGuard guard(ThreadSlot::lock_of(slot));
      if (span.slot() == slot) {
        return guard;
      }
    }
  }

  bool take_over(SizeClass size_class, std::uint32_t mine, std::uint32_t theirs) {
    const std::scoped_lock both(ThreadSlot::lock_of(mine), ThreadSlot::lock_of(theirs));
    SpanNumber number = slots_[theirs].first(size_class);
    if (number != 0 && ThreadSlot::is_taken(theirs)) {
      number = at(number).next;  // that thread allocates from the first
    }
    if (number == 0) {
      return false;
    }
    Span& span = at(number);
    unlink(slots_[theirs], number);
    slots_[theirs].used_bytes -= span.used_bytes();
    slots_[mine].used_bytes += span.used_bytes();
    span.set_slot(mine);
    link(slots_[mine], number);
    return true;
  }

  // After the first: the thread continues with that, so that its next blocks are adjacent.
  void link(Slot& slot, SpanNumber number) {
    Span& span = at(number);
    const SpanNumber first = slot.first(span.size_class());
    span.previous = first;
    span.next = first == 0 ? 0 : at(first).next;
    if (first == 0) {
      slot.set_first(span.size_class(), number);
    } else {
      at(first).next = number;
    }
    if (span.next != 0) {
      at(span.next).previous = number;
    }
  }

  void unlink(Slot& slot, SpanNumber number) {
    Span& span = at(number);
    if (span.previous == 0) {
      slot.set_first(span.size_class(), span.next);
    } else {
      at(span.previous).next = span.next;
    }
    if (span.next != 0) {
      at(span.next).previous = span.previous;
    }
    span.next = span.previous = 0;
  }

  bool is_span(SpanNumber number, std::uint64_t heap_bytes) const {
    return number < heap_bytes / kSpanBytes && map_.contains(heap(), number);
  }
  bool is_sane(std::uint32_t slot, SizeClass size_class, std::uint64_t heap_bytes) const {
    SpanNumber previous = 0;
    for (SpanNumber i = slots_[slot].first(size_class); i != 0; i = at(i).next) {
      if (!is_span(i, heap_bytes)) {
        return false;
      }
      const Span& span = at(i);
      if (!span.is_sane() || span.is_full() || span.slot() != slot ||
          span.size_class() != size_class || span.previous != previous) {
        return false;
      }
      previous = i;
    }
    return true;
  }

  const std::uint64_t place_;
  std::uint64_t spans_ = 0;  // also the empty ones
  SpanNumber empty_spans_ = 0;
  std::atomic<std::uint32_t> slots_used_{0};  // later slots never had a span
  SpanMap map_;
  Slot slots_[kThreadSlots];
};

}  // namespace vellum::detail

#endif  // VELLUM_HEAP_CLASSES_HPP
