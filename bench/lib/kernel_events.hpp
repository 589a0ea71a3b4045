// bench/lib/kernel_events.hpp: what the kernel did for a thread, by its tracepoints. Times need as
// many processors as threads; these counts tell on a small machine what a large one has to expect.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace bench {

struct KernelEventCounts {
  // Flushes of a TLB that the thread asked other processors for: each costs them an interrupt, and
  // the thread waits for all of them.
  std::uint64_t remote_flushes = 0;
  // The thread found a lock of the kernel taken, and spun or slept.
  std::uint64_t lock_waits = 0;
};

// Counts from its construction on, for the thread that makes it. Needs the kernel's tracepoints and
// CAP_PERFMON.
class KernelEvents {
 public:
  KernelEvents();  // throws std::runtime_error that says what is missing
  ~KernelEvents();
  KernelEvents(const KernelEvents&) = delete;
  KernelEvents& operator=(const KernelEvents&) = delete;
  KernelEventCounts counts() const;

 private:
  std::array<int, 2> counters_{-1, -1};  // file descriptors: flushes, waits
};

}  // namespace bench
