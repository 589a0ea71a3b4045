// memory/kernel/fault_router.hpp: SIGBUS and SIGSEGV, routed to the region of the address.
//
// The handlers are installed when the first region opens and stay. A fault that no region owns goes
// to the handler that was there before. If there was none, the default action kills the process at
// the instruction that faulted.
//
// fork(): a child has no routes (its copy of the table is wiped), so a region's address behaves
// there like any unmapped address.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vellum::region {

struct Fault {
  std::byte* address = nullptr;
  bool is_write = false;
  int signal_number = 0;  // SIGSEGV, or SIGBUS for a missing page
};

enum class FaultResult {
  retry,     // the access can be tried again
  not_ours,  // an address beyond the region's size, a write to a read-only region
  lost,      // the page cannot be had, the reason is on standard error: the process gets SIGBUS
};

class FaultTarget {
 public:
  virtual ~FaultTarget() = default;
  // Called in signal context, in the faulting thread. Allocates nothing; takes only HandlerLocks.
  virtual FaultResult on_fault(const Fault& fault) noexcept = 0;
};

// Routes faults in [begin, end) to `target` until remove_route. Throws Errc::unsupported when
// 16,384 regions are open.
void add_route(std::byte* begin, std::byte* end, FaultTarget* target);
// Returns when no thread is inside the target's on_fault any more.
void remove_route(FaultTarget* target) noexcept;

// Whether the handler of a signal is in place. Another one that passes on foreign faults may have
// replaced it: that cannot be told.
bool handles(int signal_number) noexcept;
// Checks whether the installed handlers are still in place: prints one line on standard error for
// each that another handler has replaced.
void look_at_handlers() noexcept;

}  // namespace vellum::region
