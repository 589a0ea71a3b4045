// memory/kernel/handler_stack.hpp: stacks for page fills in signal handlers.
//
// A handler runs on the thread's alternate stack where there is one (sigaltstack(2)), else on the
// thread's own. Either may be small: alternate stacks are often 8 KiB, and the kernel's frame takes
// half; threads may have 16 KiB. Reading and decoding a block needs more, so it runs on a stack of
// this pool.
#pragma once

namespace vellum::region {

// Must precede the first call_on_handler_stack(). Throws Errc::out_of_memory.
void make_handler_stacks();

// Calls body(argument) on one of 256 stacks of 64 KiB; waits for a stack if all are taken.
// REQUIRES: `body` returns, and the thread's signals are blocked.
void call_on_handler_stack(void (*body)(void*), void* argument) noexcept;

}  // namespace vellum::region
