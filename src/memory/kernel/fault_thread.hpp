// memory/kernel/fault_thread.hpp: a thread that serves the faults of one userfaultfd.
//
// A thread that accesses an absent page sleeps in the kernel until this thread has filled the page.
// No signal is raised, so signal handlers of other libraries do not matter. Switching threads costs
// tens of microseconds a fault; in exchange, system calls may wait for pages, too.
//
// A lost page is poisoned: an access gets SIGBUS, and a system call EFAULT.
#pragma once

#include <atomic>
#include <thread>

#include "memory/kernel/fault_router.hpp"

namespace vellum::region {

class FaultThread {
 public:
  // REQUIRES: `uffd` is of open_fault_userfaultfd(), and outlives this. Throws when no thread or no
  // descriptor is available.
  FaultThread(int uffd, FaultTarget& target);
  // Returns when the target is no longer used. Threads that still wait for a page then wait until
  // `uffd` is closed.
  ~FaultThread();
  FaultThread(const FaultThread&) = delete;
  FaultThread& operator=(const FaultThread&) = delete;

 private:
  void run() noexcept;
  void serve_all() noexcept;

  const int uffd_;
  FaultTarget& target_;
  const int stop_;  // an eventfd(2)
  std::thread thread_;
};

}  // namespace vellum::region
