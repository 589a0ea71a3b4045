#include "format/records/page_diff.hpp"

#include <cassert>

#include "base/processor.h"

#if defined(VELLUM_X86_64)
#include <immintrin.h>
#endif

// The application may write the page during this read. That is intended: the recorded byte is the
// loaded one. Each kernel loads a line into registers or a local copy once, and hides the value
// from the optimizer, which could otherwise load the same bytes again.
#define VELLUM_RACY_READ __attribute__((no_sanitize("thread")))

namespace vellum::format {
namespace {

using Word = std::uint64_t;
using LooseWord __attribute__((may_alias, aligned(1))) = std::uint64_t;
constexpr std::size_t kWordsPerLine = kLineBytes / sizeof(Word);

// One bit for every byte of `x` that is not zero.
std::uint64_t nonzero_bytes(Word x) noexcept {
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < 8; ++i) bits |= std::uint64_t{((x >> (8 * i)) & 0xff) != 0} << i;
  return bits;
}

VELLUM_RACY_READ void diff_generic(const std::byte* old_content, const std::byte* now,
                                   std::uint64_t lines, PageDiff& out) noexcept {
  out.lines = 0;
  for (; lines != 0; lines &= lines - 1) {
    const auto line = static_cast<std::size_t>(std::countr_zero(lines));
    const std::size_t at = line * kLineBytes;
    const auto* from = reinterpret_cast<const volatile LooseWord*>(now + at);
    const auto* old =
        reinterpret_cast<const LooseWord*>(old_content == nullptr ? now : old_content + at);
    auto* copy = reinterpret_cast<LooseWord*>(out.copy + at);
    std::uint64_t mask = 0;
    for (unsigned i = 0; i < kWordsPerLine; ++i) {
      const Word w = from[i];
      const Word changed = w ^ (old_content == nullptr ? 0 : old[i]);
      copy[i] = w;
      if (changed != 0) mask |= nonzero_bytes(changed) << (8 * i);
    }
    out.mask[line] = mask;
    out.lines |= std::uint64_t{mask != 0} << line;
  }
}

#if defined(VELLUM_X86_64)

constexpr std::size_t kGroup = 4;  // lines per branch: most groups are unchanged

// NOLINTBEGIN(portability-simd-intrinsics)
template <bool kFromZero>
__attribute__((target("avx512f,avx512bw"))) VELLUM_RACY_READ void diff_avx512(
    const std::byte* old_content, const std::byte* now, PageDiff& out) noexcept {
  std::uint64_t lines = 0;
  for (std::size_t line = 0; line < kLinesPerPage; line += kGroup) {
    __m512i loaded[kGroup];
    std::uint64_t mask[kGroup];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kGroup; ++i) {
      const std::size_t at = (line + i) * kLineBytes;
      loaded[i] = _mm512_loadu_si512(now + at);
      asm("" : "+v"(loaded[i]));
      if constexpr (kFromZero) {
        mask[i] = _mm512_test_epi8_mask(loaded[i], loaded[i]);
      } else {
        mask[i] = _mm512_cmpneq_epi8_mask(loaded[i], _mm512_loadu_si512(old_content + at));
      }
    }
    if ((mask[0] | mask[1] | mask[2] | mask[3]) == 0) continue;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kGroup; ++i) {
      _mm512_store_si512(out.copy + (line + i) * kLineBytes, loaded[i]);
      out.mask[line + i] = mask[i];
      lines |= std::uint64_t{mask[i] != 0} << (line + i);
    }
  }
  out.lines = lines;
}

template <bool kFromZero>
__attribute__((target("avx2"))) VELLUM_RACY_READ void diff_avx2(const std::byte* old_content,
                                                                const std::byte* now,
                                                                PageDiff& out) noexcept {
  std::uint64_t lines = 0;
  for (std::size_t line = 0; line < kLinesPerPage; ++line) {
    const std::size_t at = line * kLineBytes;
    __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(now + at));
    __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(now + at + 32));
    asm("" : "+x"(low), "+x"(high));
    __m256i old_low = _mm256_setzero_si256(), old_high = _mm256_setzero_si256();
    if constexpr (!kFromZero) {
      old_low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(old_content + at));
      old_high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(old_content + at + 32));
    }
    const __m256i differ =
        _mm256_or_si256(_mm256_xor_si256(low, old_low), _mm256_xor_si256(high, old_high));
    if (_mm256_testz_si256(differ, differ) != 0) continue;
    const auto same_low =
        static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, old_low)));
    const auto same_high =
        static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, old_high)));
    _mm256_store_si256(reinterpret_cast<__m256i*>(out.copy + at), low);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out.copy + at + 32), high);
    out.mask[line] = ~(std::uint64_t{same_high} << 32 | same_low);
    lines |= std::uint64_t{1} << line;
  }
  out.lines = lines;
}
// NOLINTEND(portability-simd-intrinsics)

void run_kernel(DiffKernel kernel, const std::byte* old_content, const std::byte* now,
                PageDiff& out) noexcept {
  const bool from_zero = old_content == nullptr;
  if (kernel == DiffKernel::avx512) {
    return from_zero ? diff_avx512<true>(nullptr, now, out)
                     : diff_avx512<false>(old_content, now, out);
  }
  if (kernel == DiffKernel::avx2) {
    return from_zero ? diff_avx2<true>(nullptr, now, out) : diff_avx2<false>(old_content, now, out);
  }
  diff_generic(old_content, now, ~std::uint64_t{0}, out);
}

DiffKernel best_kernel() noexcept {
  if (diff_kernel_supported(DiffKernel::avx512)) return DiffKernel::avx512;
  if (diff_kernel_supported(DiffKernel::avx2)) return DiffKernel::avx2;
  return DiffKernel::generic;
}

#else

void run_kernel(DiffKernel, const std::byte* old_content, const std::byte* now,
                PageDiff& out) noexcept {
  diff_generic(old_content, now, ~std::uint64_t{0}, out);
}

DiffKernel best_kernel() noexcept { return DiffKernel::generic; }

#endif

}  // namespace

bool diff_kernel_supported(DiffKernel kernel) noexcept {
#if defined(VELLUM_X86_64)
  __builtin_cpu_init();
  if (kernel == DiffKernel::avx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  }
  if (kernel == DiffKernel::avx2) return __builtin_cpu_supports("avx2");
#endif
  return kernel == DiffKernel::generic;
}

void diff_page_with(DiffKernel kernel, const std::byte* old_content, const std::byte* now,
                    PageDiff& out) noexcept {
  assert(now != nullptr && diff_kernel_supported(kernel));
  run_kernel(kernel, old_content, now, out);
}

void diff_lines(const std::byte* old_content, const std::byte* now, std::uint64_t lines,
                PageDiff& out) noexcept {
  assert(now != nullptr);
  diff_generic(old_content, now, lines, out);
}

void diff_page(const std::byte* old_content, const std::byte* now, PageDiff& out) noexcept {
  assert(now != nullptr);
  static const DiffKernel kernel = best_kernel();
  run_kernel(kernel, old_content, now, out);
}

}  // namespace vellum::format
