// base/per_process.hpp: objects that each process has of its own, also after fork().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/fork_count.hpp"

namespace vellum::base {

// A child of fork() has none of its parent's threads, and perhaps a lock that nobody will give
// back: it gets another object. None is ever destroyed: its users may outlive static objects.
template <typename T>
class PerProcess {
 public:
  // What `make` (which gives a T) made at this process's first call.
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

// An object that all of a process's users share, and that is there as long as one of them has it.
template <typename T>
class SharedInProcess {
 public:
  // What the others have, or what `make` (which gives a std::shared_ptr<T>) makes now.
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
