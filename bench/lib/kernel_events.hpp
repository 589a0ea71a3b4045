// bench/lib/kernel_events.hpp: counts the kernel's work for a thread, by its tracepoints. Times
// need as many processors as threads; these counts predict on a small machine the costs on a large
// one.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace bench {

struct KernelEventCounts {
  // TLB flushes that the thread requested from other processors: each costs them an interrupt, and
  // the thread waits for all of them.
  std::uint64_t remote_flushes = 0;
  // The thread met a held lock of the kernel, and spun or slept.
  std::uint64_t lock_waits = 0;
};

// Counts from its construction on, for the constructing thread. Needs the kernel's tracepoints and
// CAP_PERFMON.
class KernelEvents {
 public:
  KernelEvents();  // throws std::runtime_error that names what is missing
  ~KernelEvents();
  KernelEvents(const KernelEvents&) = delete;
  KernelEvents& operator=(const KernelEvents&) = delete;
  KernelEventCounts counts() const;

 private:
  std::array<int, 2> counters_{-1, -1};  // file descriptors: flushes, waits
};

}  // namespace bench
