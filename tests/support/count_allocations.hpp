// Replaces malloc by one that counts; allocations of shared libraries count, too. Include in one
// file of a program. A sanitizer has its own malloc: nothing counts there.
#pragma once

#include <cstddef>

#include "support/sanitizers.hpp"

namespace vellum::test {

inline constexpr bool kCountsAllocations = !kSanitizer;
inline constinit thread_local std::size_t allocations = 0;  // of this thread

}  // namespace vellum::test

#if !VELLUM_TEST_ASAN && !VELLUM_TEST_TSAN
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  ++vellum::test::allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++vellum::test::allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* block, std::size_t size) {
  ++vellum::test::allocations;
  return __libc_realloc(block, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++vellum::test::allocations;
  return __libc_memalign(alignment, size);
}
}
#endif
