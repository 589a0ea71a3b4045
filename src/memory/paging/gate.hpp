// memory/paging/gate.hpp: work that others can stop for a while.
//
// Any context, any number of threads. Who closes the gate waits for the work in progress, so it
// must not hold what that work waits for.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace vellum::region {

class Gate {
 public:
  // False: the gate is closed, and the work is not done. In either case leave() is due.
  bool enter() noexcept {
    inside_.fetch_add(1);  // before the look at closed_: pairs with close()
    return closed_.load() == 0;
  }
  void leave() noexcept { inside_.fetch_sub(1); }

  // On return nobody is inside; nobody enters before as many calls of open().
  void close() noexcept {
    closed_.fetch_add(1);
    while (inside_.load() != 0) sched_yield();
  }
  void open() noexcept { closed_.fetch_sub(1); }

 private:
  std::atomic<std::uint32_t> inside_{0}, closed_{0};
};

// Closed while this lives.
class ClosedGate {
 public:
  explicit ClosedGate(Gate& gate) noexcept : gate_(gate) { gate_.close(); }
  ~ClosedGate() { gate_.open(); }
  ClosedGate(const ClosedGate&) = delete;
  ClosedGate& operator=(const ClosedGate&) = delete;

 private:
  Gate& gate_;
};

}  // namespace vellum::region
