// Whether this program is built with a sanitizer: some tests then do less, or cannot decide.
#pragma once

#if defined(__has_feature)
#define VELLUM_TEST_HAS_FEATURE(name) __has_feature(name)
#else
#define VELLUM_TEST_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || VELLUM_TEST_HAS_FEATURE(address_sanitizer)
#define VELLUM_TEST_ASAN 1
#else
#define VELLUM_TEST_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || VELLUM_TEST_HAS_FEATURE(thread_sanitizer)
#define VELLUM_TEST_TSAN 1
#else
#define VELLUM_TEST_TSAN 0
#endif

namespace vellum::test {

inline constexpr bool kAsan = VELLUM_TEST_ASAN != 0;
inline constexpr bool kTsan = VELLUM_TEST_TSAN != 0;
inline constexpr bool kSanitizer = kAsan || kTsan;

// The number of repetitions: fewer under a sanitizer, which slows everything down.
constexpr int rounds(int plain, int sanitized) { return kSanitizer ? sanitized : plain; }

}  // namespace vellum::test
