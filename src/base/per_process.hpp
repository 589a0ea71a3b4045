// base/per_process.hpp: an object that each process has of its own, also after fork().
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>

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
    while (owned == nullptr || owned->owner != getpid()) {
      auto fresh = std::make_unique<Owned>(getpid(), make);
      if (current_.compare_exchange_strong(owned, fresh.get())) return fresh.release()->object;
    }
    return owned->object;
  }

 private:
  struct Owned {
    template <typename Make>
    Owned(pid_t process, const Make& make) : owner(process), object(make()) {}
    const pid_t owner;
    T object;
  };
  std::atomic<Owned*> current_{nullptr};
};

}  // namespace vellum::base
