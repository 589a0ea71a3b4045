// base/threads/interruption.hpp: ends a long call early on request.
//
// The caller provides a flag. The work checks it periodically, at points where it can fail anyway.
#pragma once

#include <atomic>
#include <exception>

namespace vellum::base {

// The work was interrupted on request.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// While this object exists, calls of its thread throw Interrupted soon after `request` is true.
class Interruptible {
 public:
  using Request = std::atomic<bool>;

  explicit Interruptible(const Request& request) noexcept : before_(current) { current = &request; }
  ~Interruptible() { current = before_; }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  // The flag of this thread, for work that it shares with other threads; null: none.
  static const Request* request() noexcept { return current; }

 private:
  static inline thread_local const Request* current = nullptr;
  const Request* before_;
};

inline void throw_if(const Interruptible::Request* request) {
  if (request != nullptr && request->load(std::memory_order_relaxed)) throw Interrupted();
}

}  // namespace vellum::base
