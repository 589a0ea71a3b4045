// region/fault_router.hpp: SIGBUS and SIGSEGV, routed to the region that the address lies in.
//
// Handlers are installed when the first region opens and stay. A fault that no region owns goes to
// the handler that was there before, or, when there was none, kills the process by the default
// action, at the instruction that faulted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vellum::region {

class FaultTarget {
 public:
  virtual ~FaultTarget() = default;
  // Called in signal context, in the faulting thread. True: the access can be tried again. False:
  // not ours after all (an address beyond the region's size, a write to a read-only region).
  // Allocates nothing; takes only HandlerLocks.
  virtual bool on_fault(std::byte* address, bool is_write) noexcept = 0;
};

// Routes faults in [begin, end) to `target` until remove_route. Throws Errc::unsupported when 1,024
// regions are open.
void add_route(std::byte* begin, std::byte* end, FaultTarget* target);
// Returns when no thread is inside the target's on_fault any more.
void remove_route(FaultTarget* target) noexcept;

// Ends the process by SIGBUS (or hands it to the handler that was there before), after one line on
// standard error. For a page that cannot be read back: it must never reach the program as data.
// Call from on_fault; returns, the signal is pending.
void deliver_sigbus(const char* message) noexcept;

}  // namespace vellum::region
