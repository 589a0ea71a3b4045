// memory/kernel/fault_thread.hpp: a thread that answers the faults of one userfaultfd.
//
// A thread that touches an absent page sleeps in the kernel until this one has brought the page in.
// No signal is raised, so handlers that other libraries install do not matter. The hand-over costs
// tens of microseconds a fault; in exchange, system calls may be waited for, too.
//
// A page that is lost is poisoned: whoever touches it gets SIGBUS, and a system call EFAULT.
#pragma once

#include <atomic>
#include <thread>

#include "memory/kernel/fault_router.hpp"

namespace vellum::region {

class FaultThread {
 public:
  // REQUIRES: `uffd` is of open_fault_userfaultfd(), and outlives this. Throws when there is no
  // thread or no descriptor for it.
  FaultThread(int uffd, FaultTarget& target);
  // Returns when the target is no longer used. Who still waits for a page then waits until `uffd` is
  // closed.
  ~FaultThread();
  FaultThread(const FaultThread&) = delete;
  FaultThread& operator=(const FaultThread&) = delete;

 private:
  void run() noexcept;
  void answer_all() noexcept;

  const int uffd_;
  FaultTarget& target_;
  const int stop_;  // an eventfd(2)
  std::thread thread_;
};

}  // namespace vellum::region
