// base/memory/thread_sanitizer.hpp: mappings under ThreadSanitizer: their addresses and their order.
#pragma once

#include <cstdint>

// ThreadSanitizer's names.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" __attribute__((weak)) void __tsan_init();
extern "C" __attribute__((weak)) void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" __attribute__((weak)) void AnnotateIgnoreWritesEnd(const char* file, int line);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace vellum::base {

// ThreadSanitizer aborts a program that maps memory over its own tables. The range from here on is
// free for mappings (compiler-rt, tsan_platform.h).
inline constexpr std::uintptr_t kThreadSanitizerMappings = 0x7e8000000000;

// Determined at run time: a program may use ThreadSanitizer without an instrumented library.
inline bool in_thread_sanitizer() noexcept { return &__tsan_init != nullptr; }

inline bool may_map_at(std::uint64_t address) noexcept {
  return !in_thread_sanitizer() || address >= kThreadSanitizerMappings;
}

// While one lives, mmap(2) by this thread is not a write to the mapped bytes. The kernel orders a
// mapping before each access that meets it; ThreadSanitizer does not see that order.
class OrderedByKernel {
 public:
  OrderedByKernel() noexcept {
    if (AnnotateIgnoreWritesBegin != nullptr) AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~OrderedByKernel() {
    if (AnnotateIgnoreWritesEnd != nullptr) AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  }
  OrderedByKernel(const OrderedByKernel&) = delete;
  OrderedByKernel& operator=(const OrderedByKernel&) = delete;
};

}  // namespace vellum::base
