// format/records/page_diff.hpp: the changed bytes of a page.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kLinesPerPage = kPageBytes / kLineBytes;
static_assert(kLinesPerPage == 64, "a set of lines is one 64-bit word");

// The difference of one page. `copy` holds the changed lines as read, at their offsets in the page.
// `mask` is computed from that copy. The two agree even while another thread writes the page.
struct PageDiff {
  static constexpr std::size_t kSlackBytes = 16;  // copiers may read past a span's end
  alignas(kLineBytes) std::byte copy[kPageBytes + kSlackBytes];  // valid in changed lines
  std::uint64_t mask[kLinesPerPage];  // one bit per byte; valid for changed lines
  std::uint64_t lines;                // one bit per changed line
};

enum class DiffKernel { generic, avx2, avx512 };
bool diff_kernel_supported(DiffKernel kernel) noexcept;

// Fills `out`. A null `old_content` stands for an all-zero page. Reads every line of `now` once.
void diff_page(const std::byte* old_content, const std::byte* now, PageDiff& out) noexcept;
// The same for the lines whose bits are set. Reads no others.
void diff_lines(const std::byte* old_content, const std::byte* now, std::uint64_t lines,
                PageDiff& out) noexcept;
// REQUIRES: diff_kernel_supported(kernel).
void diff_page_with(DiffKernel kernel, const std::byte* old_content, const std::byte* now,
                    PageDiff& out) noexcept;

// Calls emit(offset, length) for every span of set bits, in order. Merges spans with at most
// `merge_gap_bytes` clear bits between them.
template <typename Emit>
void for_each_span(std::uint64_t lines, const std::uint64_t* mask, std::size_t merge_gap_bytes,
                   Emit emit) {
  std::size_t start = 0, end = 0;  // the span not yet emitted; none while end is 0
  for (; lines != 0; lines &= lines - 1) {
    const auto line = static_cast<std::size_t>(std::countr_zero(lines));
    std::uint64_t m = mask[line];
    while (m != 0) {
      const auto first = static_cast<std::size_t>(std::countr_zero(m));
      const auto length = static_cast<std::size_t>(std::countr_one(m >> first));
      m = first + length == 64 ? 0 : m & (~std::uint64_t{0} << (first + length));
      const std::size_t at = line * kLineBytes + first;
      assert(at >= end);
      if (end == 0 || at - end > merge_gap_bytes) {
        if (end != 0) emit(start, end - start);
        start = at;
      }
      end = at + length;
    }
  }
  assert(end <= kPageBytes);
  if (end != 0) emit(start, end - start);
}

}  // namespace vellum::format
