// base/threads/interruption.hpp: a long call ends early when the thread that called it is asked to.
//
// The caller says where the wish will be; the work looks there now and then, at places where it can
// fail anyway.
#pragma once

#include <atomic>
#include <exception>

namespace vellum::base {

// The work has not been done, for no fault of its own.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// While it lives, calls of this thread end by Interrupted soon after `wish` is true.
class Interruptible {
 public:
  using Wish = std::atomic<bool>;

  explicit Interruptible(const Wish& wish) noexcept : before_(current) { current = &wish; }
  ~Interruptible() { current = before_; }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  // Of this thread, for work that it shares with others; null: nobody will ask.
  static const Wish* wish() noexcept { return current; }

 private:
  static inline thread_local const Wish* current = nullptr;
  const Wish* before_;
};

inline void throw_if(const Interruptible::Wish* wish) {
  if (wish != nullptr && wish->load(std::memory_order_relaxed)) throw Interrupted();
}

}  // namespace vellum::base
