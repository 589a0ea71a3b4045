// memory/paging/gate.hpp: work that other threads can suspend.
//
// Any context, any number of threads. REQUIRES: a thread that closes the gate holds nothing that
// the work in progress waits for, since close() waits for that work.
#pragma once

#include <sched.h>

#include <atomic>
#include <cassert>
#include <cstdint>

namespace vellum::region {

class Gate {
 public:
  // False: the gate is closed, and the work is not done. In either case leave() is due.
  bool enter() noexcept {
    inside_.fetch_add(1);  // before the load of closed_: pairs with close()
    return closed_.load() == 0;
  }
  void leave() noexcept {
    [[maybe_unused]] const std::uint32_t before = inside_.fetch_sub(1);
    assert(before != 0);
  }

  // On return no thread is inside; none enters before as many calls of open().
  void close() noexcept {
    closed_.fetch_add(1);
    while (inside_.load() != 0) sched_yield();
  }
  void open() noexcept {
    [[maybe_unused]] const std::uint32_t before = closed_.fetch_sub(1);
    assert(before != 0);
  }

 private:
  std::atomic<std::uint32_t> inside_{0}, closed_{0};
};

// Keeps the gate closed while it lives.
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
