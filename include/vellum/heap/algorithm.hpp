// vellum/heap/algorithm.hpp: how a heap allocates.
//
// Boost's best fit serves the heap. Blocks up to 1 KiB are allocated from spans (classes.hpp), and
// the spans from best fit; so are small blocks of a heap below 1 MiB, or of one without space for
// another span. A heap of an earlier Vellum gets spans when it needs one, and keeps its blocks.
#ifndef VELLUM_HEAP_ALGORITHM_HPP
#define VELLUM_HEAP_ALGORITHM_HPP

#include <algorithm>
#include <boost/interprocess/containers/allocation_type.hpp>
#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/offset_ptr.hpp>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vellum/heap/classes.hpp>
#include <vellum/heap/header.hpp>
#include <vellum/heap/mutex.hpp>
#include <vellum/heap/open_heaps.hpp>

namespace vellum::detail {

// Boost's best fit, with size classes in front of it, extended to grow the region before it fails.
// REQUIRES: it directly follows a HeapHeader.
class HeapAlgorithm
    : public boost::interprocess::rbtree_best_fit<HeapMutexFamily,
                                                  boost::interprocess::offset_ptr<void>> {
  using base = rbtree_best_fit;

  template <class Result>
  Result or_refuse(size_type bytes, Result result) {
    if (!result) {
      refuse_allocation(this, bytes);
    }
    return result;
  }

  // The result of `attempt`; false or nullptr: there is no space.
  template <class Attempt>
  auto until_grown(size_type least_bytes, size_type wanted_bytes, const Attempt& attempt) {
    // The base locks too, but reads the segment's size before it does.
    const HeapGuard guard(HeapMutex::of_process());
    auto result = attempt();
    if (!result && give_back_empty_spans()) {
      result = attempt();
    }
    if (!result) {
      if (const std::uint64_t region_bytes = grow_region_of(this, least_bytes, wanted_bytes)) {
        grow(region_bytes - sizeof(HeapHeader) - header().segment_bytes);
        result = attempt();
      }
    }
    return result;
  }

 public:
  using size_type = base::size_type;

  HeapAlgorithm(size_type size, size_type reserved_bytes) : base(size, reserved_bytes) {}

  // Adds the space by which the region has grown.
  void grow(size_type more_bytes) {
    base::grow(more_bytes);
    header().segment_bytes += more_bytes;
  }

  // An upper bound for one request of a container. Not the current size: the heap grows.
  size_type get_size() const { return size_type{1} << 46; }

  size_type get_free_memory() const {
    const HeapClasses* const classes = this->classes();
    return base::get_free_memory() + (classes == nullptr ? 0 : classes->free_bytes());
  }

  bool check_sanity() {
    const HeapGuard guard(HeapMutex::of_process());
    const HeapClasses* const classes = this->classes();
    return base::check_sanity() && (classes == nullptr || classes->is_sane(header().segment_bytes));
  }

  // The usable bytes of a block.
  size_type size(const void* block) const {
    return is_small(block) ? classes()->bytes_of(block) : base::size(block);
  }

  void* allocate(size_type bytes) {
    if (void* const block = allocate_small(bytes)) {
      return block;
    }
    return or_refuse(bytes, until_grown(bytes, bytes, [&] { return base::allocate(bytes); }));
  }

  void* allocate_aligned(size_type bytes, size_type alignment) {
    return or_refuse(bytes, until_grown(bytes + alignment, bytes + alignment,
                                        [&] { return base::allocate_aligned(bytes, alignment); }));
  }

  void allocate_many(size_type bytes, size_type count, multiallocation_chain& chain) {
    const size_type before = chain.size();
    const size_type total = (bytes + kBlockBytes) * count;
    or_refuse(total, until_grown(total, total, [&] {
                base::allocate_many(bytes, count, chain);
                return chain.size() != before;
              }));
  }

  void allocate_many(const size_type* sizes, size_type count, size_type unit,
                     multiallocation_chain& chain) {
    const size_type before = chain.size();
    size_type total = 0;
    for (size_type i = 0; i < count; ++i) {
      total += sizes[i] * unit + kBlockBytes;
    }
    or_refuse(total, until_grown(total, total, [&] {
                base::allocate_many(sizes, count, unit, chain);
                return chain.size() != before;
              }));
  }

  void deallocate(void* block) {
    if (!is_small(block)) {
      base::deallocate(block);
    } else if (Span* const empty = classes()->deallocate(block)) {
      const HeapGuard guard(HeapMutex::of_process());
      classes()->keep_empty(*empty);
    }
  }

  void deallocate_many(multiallocation_chain& chain) {
    while (!chain.empty()) {
      deallocate(chain.pop_front());
    }
  }

  template <class T>
  T* allocation_command(boost::interprocess::allocation_type command, size_type least,
                        size_type& wanted_then_received, T*& reuse) {
    namespace bi = boost::interprocess;
    const bool may_be_new = (command & bi::allocate_new) != 0;
    const size_type wanted = wanted_then_received;
    if (is_small(reuse)) {
      // It keeps its size.
      wanted_then_received = classes()->bytes_of(reuse) / sizeof(T);
      if ((command & bi::expand_fwd) != 0 && wanted_then_received >= least) {
        return reuse;
      }
      if (!may_be_new) {
        return nullptr;
      }
      reuse = nullptr;
    }
    if (!may_be_new) {
      const HeapGuard guard(HeapMutex::of_process());
      return base::allocation_command(command, least, wanted_then_received, reuse);
    }
    if (wanted <= kLargestClassBytes / sizeof(T)) {
      if (void* const block = allocate_small(wanted * sizeof(T))) {
        wanted_then_received = kClassBytes[class_of(wanted * sizeof(T))] / sizeof(T);
        reuse = nullptr;
        return static_cast<T*>(block);
      }
    }
    T* const block = reuse;
    return or_refuse(least * sizeof(T), until_grown(least * sizeof(T), wanted * sizeof(T), [&] {
                       // The base refuses any request larger than the current segment.
                       wanted_then_received =
                           std::max(least, std::min(wanted, base::get_size() / sizeof(T)));
                       reuse = block;
                       return base::allocation_command(command, least, wanted_then_received, reuse);
                     }));
  }

  // Part of Boost's interface; never called.
  void* raw_allocation_command(boost::interprocess::allocation_type command, size_type least,
                               size_type& wanted_then_received, void*& reuse,
                               size_type object_bytes = 1) = delete;

 private:
  static constexpr size_type kBlockBytes = 32;  // the largest overhead of a block
  // In a smaller region, spans that are hardly used would take a large part.
  static constexpr std::uint64_t kMinBytesForSpans = 1 << 20;

  HeapHeader& header() { return *(reinterpret_cast<HeapHeader*>(this) - 1); }
  const HeapHeader& header() const { return *(reinterpret_cast<const HeapHeader*>(this) - 1); }
  char* start() { return reinterpret_cast<char*>(&header()); }

  HeapClasses* classes() {
    const std::uint64_t place = header().classes.load(std::memory_order_acquire);
    return place == 0 ? nullptr : reinterpret_cast<HeapClasses*>(start() + place);
  }
  const HeapClasses* classes() const { return const_cast<HeapAlgorithm*>(this)->classes(); }

  bool is_small(const void* block) const {
    const HeapClasses* const classes = this->classes();
    return classes != nullptr && block != nullptr && classes->owns(block);
  }

  // ---- Blocks of spans ----

  // nullptr: spans do not serve this.
  void* allocate_small(size_type bytes) {
    if (bytes > kLargestClassBytes) {
      return nullptr;
    }
    const SizeClass size_class = class_of(bytes);
    do {
      HeapClasses* const classes = this->classes();
      void* const block = classes == nullptr ? nullptr : classes->allocate(size_class);
      if (block != nullptr) {
        return block;
      }
    } while (find_span(size_class));
    return nullptr;
  }

  // Gets a span for the next allocation of this thread. False: there is none. Spans of other live
  // threads are taken only when the heap would have to grow otherwise.
  bool find_span(SizeClass size_class) {
    return take_over(size_class, SlotsOf::ended_threads) || make_span(size_class, false) ||
           take_over(size_class, SlotsOf::living_threads) || make_span(size_class, true);
  }

  bool take_over(SizeClass size_class, SlotsOf from) {
    HeapClasses* const classes = this->classes();
    return classes != nullptr && classes->take_over(size_class, from);
  }

  bool make_span(SizeClass size_class, bool may_grow) {
    const HeapGuard guard(HeapMutex::of_process());
    if (sizeof(HeapHeader) + header().segment_bytes < kMinBytesForSpans || !make_classes()) {
      return false;
    }
    void* memory = classes()->reuse_empty();
    const auto from_best_fit = [&] {
      return base::allocate_aligned(Span::kUsableBytes, kSpanBytes);
    };
    if (memory == nullptr) {
      memory =
          may_grow ? until_grown(2 * kSpanBytes, 2 * kSpanBytes, from_best_fit) : from_best_fit();
    }
    if (memory == nullptr) {
      return false;
    }
    // A region's address may be no multiple of a span's size.
    if (!HeapClasses::is_place_for_span(start(), memory) || !make_map_part(memory)) {
      base::deallocate(memory);
      return false;
    }
    classes()->add_span(memory, size_class);
    return true;
  }

  bool make_map_part(const void* memory_of_span) {
    const std::size_t bytes = classes()->missing_map_bytes(memory_of_span);
    if (bytes == 0) {
      return true;
    }
    void* const part = until_grown(bytes, bytes, [&] { return base::allocate(bytes); });
    if (part != nullptr) {
      classes()->add_map_part(memory_of_span, part);
    }
    return part != nullptr;
  }

  bool make_classes() {
    if (classes() != nullptr) {
      return true;
    }
    void* const memory = base::allocate_aligned(sizeof(HeapClasses), alignof(HeapClasses));
    if (memory == nullptr) {
      return false;
    }
    const auto place = static_cast<std::uint64_t>(static_cast<char*>(memory) - start());
    ::new (memory) HeapClasses(place);
    header().version = kHeapWithClasses;  // a Vellum without spans must not free their blocks
    header().classes.store(place, std::memory_order_release);
    return true;
  }

  bool give_back_empty_spans() {
    bool any = false;
    if (HeapClasses* const classes = this->classes()) {
      while (void* const memory = classes->reuse_empty()) {
        base::deallocate(memory);
        any = true;
      }
    }
    return any;
  }
};

}  // namespace vellum::detail

#endif  // VELLUM_HEAP_ALGORITHM_HPP
