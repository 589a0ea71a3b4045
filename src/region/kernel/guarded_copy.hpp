// region/kernel/guarded_copy.hpp: copying from or to memory of which nobody knows that it is there.
//
// A system call says EFAULT of an address that is none; memcpy(3) ends the process. Asking the
// kernel before each copy costs more than a page's copy does: 160 ns for rt_sigprocmask(2) with a
// bad `how`, 750 ns for madvise(2) with MADV_POPULATE_READ, 1.6 us for process_vm_readv(2), each
// beside 50 ns of copying (measured on the machine of docs/measurements.md). So nobody is asked:
// the handler of SIGSEGV and SIGBUS, which is there for the regions, takes a fault of this one
// function for its end, as the kernel's own copies do it.
//
// A handler that the program has installed later, and that does not pass on what is not its own,
// gets the fault instead (vellum/region.hpp).
#pragma once

#include <cstddef>

namespace vellum::region {

// How many bytes were copied, from the first on: fewer than `length_bytes` when the next one cannot
// be read, or cannot be written. REQUIRES: a region is, or has been, open in this process.
std::size_t copy_guarded(void* to, const void* from, std::size_t length_bytes) noexcept;

// For the handler: whether the fault is one of copy_guarded(), which then returns. `context`: the
// handler's ucontext_t.
bool leave_guarded_copy(void* context) noexcept;

}  // namespace vellum::region
