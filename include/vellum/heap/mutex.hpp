// vellum/heap/mutex.hpp: locks of heaps. None is in a region.
#ifndef VELLUM_HEAP_MUTEX_HPP
#define VELLUM_HEAP_MUTEX_HPP

#include <mutex>

namespace vellum::detail {

// A lock of a heap is usually held for a fraction of a microsecond. A thread that sleeps instead of
// spinning that long loses 50 us.
template <class Mutex>
class ShortlyHeld {
 public:
  void lock() {
    for (int i = 0; i < kTries; ++i) {
      if (mutex_.try_lock()) {
        return;
      }
    }
    mutex_.lock();
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static constexpr int kTries = 100;  // a few microseconds
  Mutex mutex_;
};

// Boost puts an object of this type into the region and locks it. It has no state, so a crash
// cannot leave it locked in a region, and read-only memory can be "locked".
class HeapMutex {
 public:
  void lock() { of_process().lock(); }
  bool try_lock() { return of_process().try_lock(); }
  void unlock() { of_process().unlock(); }

  using OfProcess = ShortlyHeld<std::recursive_mutex>;
  static OfProcess& of_process() {
    static OfProcess mutex;
    return mutex;
  }
};
using HeapGuard = std::lock_guard<HeapMutex::OfProcess>;

struct HeapMutexFamily {
  using mutex_type = HeapMutex;
  using recursive_mutex_type = HeapMutex;
};

}  // namespace vellum::detail

#endif  // VELLUM_HEAP_MUTEX_HPP
