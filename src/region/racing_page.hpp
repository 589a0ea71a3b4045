// region/racing_page.hpp: copying a page of a region while the program writes it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/types.hpp"

namespace vellum::region {

// Copies a page that other threads may be writing. Not memcpy: a sanitizer would report the race
// that is allowed here.
inline void copy_racing_page(std::byte* to, const std::byte* from) noexcept {
#if defined(__x86_64__)
  std::size_t n = format::kPageBytes;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
  const volatile auto* in = reinterpret_cast<const volatile std::uint64_t*>(from);
  auto* out = reinterpret_cast<std::uint64_t*>(to);
  for (std::size_t i = 0; i < format::kPageBytes / 8; ++i) out[i] = in[i];
#endif
}

}  // namespace vellum::region
