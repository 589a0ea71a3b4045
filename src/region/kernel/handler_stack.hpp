// region/kernel/handler_stack.hpp: room for a page-in where a thread's own stack is too small for
// it.
//
// SIGSEGV comes on the alternate stack where the handler before ours asked for that, to report
// stack overflows (sigaltstack(2)). Those are often 8 KiB, of which the kernel's frame takes half;
// to read and decode a block takes more. So that is done on a stack from here.
#pragma once

namespace vellum::region {

// Before a handler may call the next one. Throws Errc::out_of_memory.
void make_handler_stacks();

// Whether this thread is on its alternate stack.
bool on_alternate_stack() noexcept;

// Calls body(argument) on a stack of 64 KiB, of which there are 64: waits for one, if all are
// taken. REQUIRES: `body` returns.
void call_on_handler_stack(void (*body)(void*), void* argument) noexcept;

}  // namespace vellum::region
