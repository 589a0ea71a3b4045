#include "base/memory/thread_sanitizer.hpp"

// NOLINTNEXTLINE(bugprone-reserved-identifier): ThreadSanitizer's name.
extern "C" __attribute__((weak)) void __tsan_init();

namespace vellum::base {

bool in_thread_sanitizer() noexcept { return &__tsan_init != nullptr; }

}  // namespace vellum::base
