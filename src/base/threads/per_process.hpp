// base/threads/per_process.hpp: one object per process, even after fork(2).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/threads/fork_count.hpp"

namespace vellum::base {

// A child of fork(2) has none of its parent's threads, and possibly a lock that is never released.
// It therefore gets another object. No object is ever destroyed: its users may outlive static
// objects.
template <typename T>
class PerProcess {
 public:
  // The object that `make` (which returns a T) created at this process's first call.
  template <typename Make>
  T& get(const Make& make) {
    Owned* owned = current_.load();
    while (owned == nullptr || owned->owner != fork_count()) {
      auto fresh = std::make_unique<Owned>(fork_count(), make);
      if (current_.compare_exchange_strong(owned, fresh.get())) return fresh.release()->object;
    }
    return owned->object;
  }

 private:
  struct Owned {
    template <typename Make>
    Owned(std::uint32_t process, const Make& make) : owner(process), object(make()) {}
    const std::uint32_t owner;
    T object;
  };
  std::atomic<Owned*> current_{nullptr};
};

// An object that all users in a process share. It exists as long as one of them holds it.
template <typename T>
class SharedInProcess {
 public:
  // The object that the others hold, or a new one of `make` (which returns a std::shared_ptr<T>).
  template <typename Make>
  std::shared_ptr<T> get(const Make& make) {
    Last& last = *last_.get([] { return std::make_unique<Last>(); });
    const std::lock_guard lock(last.mutex);
    std::shared_ptr<T> object = last.object.lock();
    if (object == nullptr) last.object = object = make();
    return object;
  }

 private:
  struct Last {
    std::mutex mutex;
    std::weak_ptr<T> object;
  };
  PerProcess<std::unique_ptr<Last>> last_;
};

}  // namespace vellum::base
