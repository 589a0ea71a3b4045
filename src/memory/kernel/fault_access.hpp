// memory/kernel/fault_access.hpp: whether the access that faulted is a store.
#pragma once

namespace vellum::region {

// Of a signal handler's address and context. Async-signal-safe, preserves nothing but its return
// value.
bool is_write_fault(const void* address, const void* context) noexcept;

// For processors that do not report it: an access that faults where a load would not is a store.
// Another thread may have filled the page since the fault, so that a load looks like a store; a
// load does not fault again, and only the fourth consecutive fault of one thread at one address
// counts.
bool is_write_by_trial(const void* address) noexcept;

}  // namespace vellum::region
