// memory/kernel/guarded_copy.hpp: copies from or to memory that may not be mapped.
//
// A system call returns EFAULT for an unmapped address; memcpy(3) kills the process. A check by the
// kernel before each copy costs more than copying a page: 160 ns for rt_sigprocmask(2) with a bad
// `how`, 750 ns for madvise(2) with MADV_POPULATE_READ, 1.6 us for process_vm_readv(2), compared
// with 50 ns of copying (measured on the machine of docs/measurements.md). The copy therefore
// checks nothing. The handler of SIGSEGV and SIGBUS, which exists for the regions, treats a fault
// in this one function as the end of the copy, as the kernel's own copies do.
//
// If the program later installs a handler that does not pass on foreign faults, that handler gets
// the fault instead (vellum/region.hpp).
#pragma once

#include <cstddef>

namespace vellum::region {

// Returns how many bytes were copied, from the first on: fewer than `length_bytes` when the next
// one cannot be read or written. REQUIRES: a region is, or has been, open in this process.
std::size_t copy_guarded(void* to, const void* from, std::size_t length_bytes) noexcept;

// For the handler: whether the fault is one of copy_guarded(), which then returns. `context` is the
// handler's ucontext_t.
bool leave_guarded_copy(void* context) noexcept;

}  // namespace vellum::region
