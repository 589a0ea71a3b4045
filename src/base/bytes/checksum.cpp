// base/bytes/checksum.cpp: XXH3, with the CPU's vector width if the library can dispatch.
#include "base/bytes/checksum.hpp"

#include "base/processor.h"

#define XXH_STATIC_LINKING_ONLY  // for a state on the stack
#if defined(VELLUM_X86_64) && __has_include(<xxh_x86dispatch.h>) && !defined(VELLUM_STATIC_XXHASH)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace vellum::base {

std::uint64_t checksum64(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t checksum64(std::span<const std::byte> head, std::span<const std::byte> body,
                         std::uint64_t seed) noexcept {
  XXH3_state_t state;  // on the stack: the fault handler must not allocate
  XXH3_INITSTATE(&state);
  // Neither call can fail with a state and valid pointers. An empty span has a null pointer, which
  // XXH3 treats as an error.
  XXH3_64bits_reset_withSeed(&state, seed);
  if (!head.empty()) XXH3_64bits_update(&state, head.data(), head.size());
  if (!body.empty()) XXH3_64bits_update(&state, body.data(), body.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace vellum::base
