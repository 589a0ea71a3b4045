// memory/kernel/fault_router.hpp: SIGBUS and SIGSEGV, routed to the region of the address.
//
// The handlers are installed when the first region opens and stay installed. A fault that no region
// owns is passed to the previous handler. Without one, the default action kills the process at the
// instruction that faulted.
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
  lost,      // the page cannot be filled, the reason is on standard error: the process gets SIGBUS
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
// Returns when no thread runs the target's on_fault any more.
void remove_route(FaultTarget* target) noexcept;

// Keeps the shared object with this copy of the library loaded, even after dlclose(3): signal
// handlers and threads use it, and not all of them can be removed. Has no effect in a program that
// is statically linked with the library.
void keep_loaded() noexcept;

// Whether the handler of a signal is still installed. Whether a handler that has replaced it passes
// on foreign faults cannot be detected.
bool handles(int signal_number) noexcept;
// Prints one line on standard error for each installed handler that another handler has replaced.
void look_at_handlers() noexcept;

}  // namespace vellum::region
