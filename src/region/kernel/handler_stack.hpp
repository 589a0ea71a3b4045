// region/kernel/handler_stack.hpp: stacks for a page-in where a thread's own stack is too small.
//
// SIGSEGV arrives on the alternate stack where the previous handler asked for that, to report stack
// overflows (sigaltstack(2)). Alternate stacks are often 8 KiB, and the kernel's frame takes half.
// Reading and decoding a block needs more, so that work runs on a stack from here.
#pragma once

namespace vellum::region {

// Call it before a handler may call call_on_handler_stack(). Throws Errc::out_of_memory.
void make_handler_stacks();

// Whether this thread is on its alternate stack.
bool on_alternate_stack() noexcept;

// Calls body(argument) on one of 64 stacks of 64 KiB; waits for a stack if all are taken. REQUIRES:
// `body` returns.
void call_on_handler_stack(void (*body)(void*), void* argument) noexcept;

}  // namespace vellum::region
