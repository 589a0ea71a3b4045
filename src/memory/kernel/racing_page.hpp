// memory/kernel/racing_page.hpp: access to a page of a region while the program writes it.
// Written in assembler, because a sanitizer would report the races that are intended here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/processor.h"
#include "format/wire/types.hpp"

namespace vellum::region {

// Copies a page that other threads may be writing.
inline void copy_racing_page(std::byte* to, const std::byte* from) noexcept {
#if defined(VELLUM_X86_64)
  std::size_t n = format::kPageBytes;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
  const volatile auto* in = reinterpret_cast<const volatile std::uint64_t*>(from);
  auto* out = reinterpret_cast<std::uint64_t*>(to);
  for (std::size_t i = 0; i < format::kPageBytes / 8; ++i) out[i] = in[i];
#endif
}

// Writes its own content to a page. Undoes no other thread's store.
inline void rewrite_racing_page(std::byte* page) noexcept {
#if defined(VELLUM_X86_64)
  asm volatile("lock orq $0, (%0)" : : "r"(page) : "memory", "cc");
#else
  __atomic_fetch_or(reinterpret_cast<std::uint64_t*>(page), 0, __ATOMIC_RELAXED);
#endif
}

}  // namespace vellum::region
