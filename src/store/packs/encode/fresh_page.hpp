// store/packs/encode/fresh_page.hpp: pages whose committed content is zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/wire/types.hpp"

namespace vellum::store {

// The delta limit of a page that was all zero: it has nothing that a delta could leave out.
inline constexpr std::size_t kMaxFreshDeltaCostBytes = format::kPageBytes / 8;

// Whether the page has so many lines in use that a delta against zero is out of the question.
// Another thread may be writing the page.
__attribute__((no_sanitize("thread"))) inline bool mostly_used(const std::byte* page) noexcept {
  std::size_t used = 0;
  for (std::size_t line = 0; line < format::kPageBytes; line += 64) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(page + line);
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < 8; ++i) any |= words[i];
    used += any != 0;
  }
  return used * 64 > 2 * kMaxFreshDeltaCostBytes;
}

}  // namespace vellum::store
