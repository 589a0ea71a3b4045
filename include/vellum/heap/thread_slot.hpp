// vellum/heap/thread_slot.hpp: a small number for each thread, and a lock for each number.
//
// Threads that are alive at the same time have different numbers, as long as there are at most 64
// of them. A thread releases its number when it ends, so few numbers are in use.
#ifndef VELLUM_HEAP_THREAD_SLOT_HPP
#define VELLUM_HEAP_THREAD_SLOT_HPP

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vellum/heap/mutex.hpp>

namespace vellum::detail {

constexpr std::uint32_t kThreadSlots = 64;

class ThreadSlot {
 public:
  static std::uint32_t of_this_thread() {
    static thread_local const ThreadSlot slot;
    return slot.number_;
  }

  // Whether a live thread has this number. It may end, and another one start, at any time.
  static bool is_taken(std::uint32_t number) {
    return (taken().load(std::memory_order_relaxed) & bit(number)) != 0;
  }

  using Mutex = ShortlyHeld<std::mutex>;
  static Mutex& lock_of(std::uint32_t number) {
    static Lock locks[kThreadSlots];
    return locks[number].mutex;
  }

 private:
  struct alignas(64) Lock {
    Mutex mutex;
  };

  ThreadSlot() {
    std::uint64_t before = taken().load(std::memory_order_relaxed);
    while (~before != 0) {
      const std::uint64_t lowest = ~before & (before + 1);
      if (taken().compare_exchange_weak(before, before | lowest, std::memory_order_relaxed)) {
        number_ = static_cast<std::uint32_t>(__builtin_ctzll(lowest));
        owned_ = true;
        return;
      }
    }
    static std::atomic<std::uint32_t> next{0};
    number_ = next.fetch_add(1, std::memory_order_relaxed) % kThreadSlots;
  }
  ~ThreadSlot() {
    if (owned_) {
      taken().fetch_and(~bit(number_), std::memory_order_relaxed);
    }
  }

  static std::uint64_t bit(std::uint32_t number) { return std::uint64_t{1} << number; }
  static std::atomic<std::uint64_t>& taken() {
    static std::atomic<std::uint64_t> numbers{0};
    return numbers;
  }

  std::uint32_t number_ = 0;
  bool owned_ = false;  // otherwise shared with other threads
};

}  // namespace vellum::detail

#endif  // VELLUM_HEAP_THREAD_SLOT_HPP
