// base/memory/thread_sanitizer.hpp: the addresses that ThreadSanitizer permits for mappings.
#pragma once

#include <cstdint>

// NOLINTNEXTLINE(bugprone-reserved-identifier): ThreadSanitizer's name.
extern "C" __attribute__((weak)) void __tsan_init();

namespace vellum::base {

// ThreadSanitizer aborts a program that maps memory over its own tables. The range from here on is
// free for mappings (compiler-rt, tsan_platform.h).
inline constexpr std::uintptr_t kThreadSanitizerMappings = 0x7e8000000000;

// Determined at run time: a program may use ThreadSanitizer without an instrumented library.
inline bool in_thread_sanitizer() noexcept { return &__tsan_init != nullptr; }

inline bool may_map_at(std::uint64_t address) noexcept {
  return !in_thread_sanitizer() || address >= kThreadSanitizerMappings;
}

}  // namespace vellum::base
