// base/thread_sanitizer.hpp: where ThreadSanitizer lets a program map memory.
#pragma once

#include <cstdint>

namespace vellum::base {

// ThreadSanitizer ends a program that maps something where its own tables lie, and leaves mappings
// the range from here on (compiler-rt, tsan_platform.h).
inline constexpr std::uintptr_t kThreadSanitizerMappings = 0x7e8000000000;

// Asked at run time: a program may use it without the library.
bool in_thread_sanitizer() noexcept;

inline bool may_map_at(std::uint64_t address) noexcept {
  return !in_thread_sanitizer() || address >= kThreadSanitizerMappings;
}

}  // namespace vellum::base
