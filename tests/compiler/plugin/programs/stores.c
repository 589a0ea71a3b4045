/* Every kind of store of C, at random addresses of tracked memory. Each stores nonzero bytes over
 * zeros: exactly the cards that change must be marked. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "tracked.h"

#define KIND(name) __attribute__((noinline)) static void name(char* at, unsigned n)
#define UNUSED (void)n

/* `n` is below 300 and never 0 in its low byte; the functions' addresses are aligned to 64 bytes
 * plus a multiple of `align` (the table below). */
static uint64_t bytes_of(unsigned n) { return 0x0101010101010101ull * ((n % 250) + 1); }

KIND(one_byte) { *at = (char)bytes_of(n); }
KIND(two_bytes) { *(uint16_t*)at = (uint16_t)bytes_of(n); }
KIND(four_bytes) { *(uint32_t*)at = (uint32_t)bytes_of(n); }
KIND(eight_bytes) { *(uint64_t*)at = bytes_of(n); }
KIND(sixteen_bytes) {
  *(unsigned __int128*)at = (unsigned __int128)bytes_of(n) << 64 | bytes_of(n);
}
KIND(a_float) { *(float*)at = (float)(n + 0.1); }
KIND(a_double) { *(double*)at = n + 0.1; }
KIND(a_long_double) { *(long double*)at = n + 0.1L; }
KIND(a_pointer) { *(char**)at = at + n; }

struct __attribute__((packed)) loose {
  uint16_t two;
  uint32_t four;
  uint64_t eight;
};
KIND(unaligned_two) { ((struct loose*)at)->two = (uint16_t)bytes_of(n); }
KIND(unaligned_four) { ((struct loose*)at)->four = (uint32_t)bytes_of(n); }
KIND(unaligned_eight) { ((struct loose*)at)->eight = bytes_of(n); }
KIND(unaligned_all) {
  struct loose* loose = (struct loose*)at;
  loose->eight = bytes_of(n);
  loose->two = (uint16_t)bytes_of(n);
  loose->four = (uint32_t)bytes_of(n);
}

/* Undefined in the language, but works on x86, and programs do it. */
KIND(misaligned_two) { *(uint16_t*)at = (uint16_t)bytes_of(n); }
KIND(misaligned_eight) { *(uint64_t*)at = bytes_of(n); }
KIND(misaligned_fields) {
  ((uint64_t*)at)[0] = bytes_of(n);
  ((uint64_t*)at)[1] = bytes_of(n);
  ((uint64_t*)at)[9] = 0x0909090909090909;
}

struct fields {
  unsigned a : 5, b : 9, c : 18;
};
KIND(bit_fields) {
  struct fields* fields = (struct fields*)at;
  fields->b = n | 1;
  fields->c = n | 1;
}

struct far_apart {
  uint64_t a;
  char gap[192];
  uint64_t b;
  char gap2[40];
  uint64_t c;
};
KIND(fields_far_apart) {
  struct far_apart* s = (struct far_apart*)at;
  s->a = bytes_of(n);
  s->c = bytes_of(n);
  s->b = bytes_of(n);
}
struct rows {
  uint64_t rows[40];
};
KIND(fields_side_by_side) {
  struct rows* s = (struct rows*)at;
  s->rows[0] = s->rows[1] = s->rows[2] = s->rows[3] = bytes_of(n);
  s->rows[4] = s->rows[5] = s->rows[6] = s->rows[7] = bytes_of(n);
  s->rows[8] = s->rows[9] = s->rows[11] = bytes_of(n);
  s->rows[20] = bytes_of(n);
}
KIND(one_of_two_branches) {
  struct rows* s = (struct rows*)at;
  s->rows[0] = bytes_of(n);
  if (n & 1)
    s->rows[30] = bytes_of(n);
  else
    s->rows[14] = bytes_of(n);
}

#define COPY_OF(size)                               \
  struct of_##size {                                \
    char bytes[size];                               \
  };                                                \
  KIND(copy_##size) {                               \
    struct of_##size from;                          \
    memset(&from, (int)(n % 250) + 1, sizeof from); \
    __asm__ volatile("" : "+m"(from));              \
    *(struct of_##size*)at = from;                  \
  }
COPY_OF(3)
COPY_OF(7)
COPY_OF(17)
COPY_OF(48)
COPY_OF(65)
COPY_OF(100)
COPY_OF(200)
COPY_OF(700)

static struct of_200 made(unsigned n) {
  struct of_200 made;
  memset(&made, (int)(n % 250) + 1, sizeof made);
  return made;
}
__attribute__((noinline)) static struct of_200 (*make)(unsigned) = made;
KIND(returned_by_value) { *(struct of_200*)at = make(n); }

KIND(memset_constant) { memset(at, (int)(n % 250) + 1, 61); }
KIND(memset_large) { memset(at, (int)(n % 250) + 1, 2000); }
KIND(memset_variable) { memset(at, (int)(n % 250) + 1, n); }
KIND(memset_nothing) { memset(at, 1, n - n); }
static char source[4096];
KIND(memcpy_constant) { memcpy(at, source + n, 130); }
KIND(memcpy_variable) { memcpy(at, source, n * 5); }
KIND(memcpy_small) { memcpy(at, source + n, 5); }
KIND(memmove_variable) { memmove(at, source + 1, n); }
KIND(memcpy_inline) {
  __builtin_memcpy_inline(at, source, 90);
  UNUSED;
}

KIND(volatile_store) { *(volatile uint64_t*)at = bytes_of(n); }
KIND(atomic_relaxed) {
  atomic_store_explicit((_Atomic uint32_t*)at, (uint32_t)bytes_of(n), memory_order_relaxed);
}
KIND(atomic_release) {
  atomic_store_explicit((_Atomic uint64_t*)at, bytes_of(n), memory_order_release);
}
KIND(atomic_ordered) { atomic_store((_Atomic uint16_t*)at, (uint16_t)bytes_of(n)); }
KIND(atomic_exchanged) { atomic_exchange((_Atomic uint64_t*)at, bytes_of(n)); }
KIND(atomic_added) { atomic_fetch_add((_Atomic uint64_t*)at, n); }
KIND(atomic_or) {
  atomic_fetch_or_explicit((_Atomic uint8_t*)at, 3, memory_order_relaxed);
  UNUSED;
}
KIND(atomic_nand) { __atomic_fetch_nand((uint32_t*)at, n, __ATOMIC_SEQ_CST); }
KIND(atomic_compared) {
  uint64_t expected = 0;
  atomic_compare_exchange_strong((_Atomic uint64_t*)at, &expected, bytes_of(n));
}
KIND(atomic_compare_failed) {
  uint64_t expected = 5;
  atomic_compare_exchange_strong((_Atomic uint64_t*)at, &expected, bytes_of(n));
}
KIND(atomic_compare_failed_expected) {
  static uint64_t object = 77;
  *(uint64_t*)(at + 8) = bytes_of(n);
  __atomic_compare_exchange_n(&object, (uint64_t*)(at + 512), 1, 0, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
}
// The compiler leaves these to libatomic's general functions, which take the number of bytes.
typedef struct {
  uint64_t words[3];
} Triple;
static Triple triple = {{7, 8, 9}};
KIND(atomic_general_load) {
  triple.words[1] = bytes_of(n);
  __atomic_load(&triple, (Triple*)at, __ATOMIC_SEQ_CST);
}
KIND(atomic_general_store) {
  Triple value = {{bytes_of(n), 1, 2}};
  __atomic_store((Triple*)at, &value, __ATOMIC_SEQ_CST);
}
KIND(atomic_general_exchange) {
  Triple value = {{bytes_of(n), 3, 4}};
  for (unsigned i = 0; i < 3; ++i) ((Triple*)at)->words[i] = ~((Triple*)(at + 512))->words[i];
  __atomic_exchange((Triple*)at, &value, (Triple*)(at + 512), __ATOMIC_SEQ_CST);
}
KIND(atomic_general_compare) {
  Triple expected = *(Triple*)at, desired = {{bytes_of(n), 5, 6}};
  __atomic_compare_exchange((Triple*)at, &expected, &desired, 0, __ATOMIC_SEQ_CST,
                            __ATOMIC_SEQ_CST);
}
#ifdef __GCC_HAVE_SYNC_COMPARE_AND_SWAP_16
KIND(atomic_sixteen) {
  __sync_bool_compare_and_swap((unsigned __int128*)at, (unsigned __int128)0,
                               (unsigned __int128)bytes_of(n));
}
#endif

typedef uint64_t v2 __attribute__((vector_size(16)));
typedef uint64_t v4 __attribute__((vector_size(32)));
typedef uint64_t v8 __attribute__((vector_size(64)));
typedef uint64_t v8_loose __attribute__((vector_size(64), aligned(1)));
typedef uint64_t v3 __attribute__((ext_vector_type(3)));
KIND(vector_16) { *(v2*)at = (v2){0} + bytes_of(n); }
KIND(vector_32) { *(v4*)at = (v4){0} + bytes_of(n); }
KIND(vector_64) { *(v8*)at = (v8){0} + bytes_of(n); }
KIND(vector_loose) { *(v8_loose*)at = (v8_loose){0} + bytes_of(n); }
KIND(vector_24) { *(v3*)at = (v3)bytes_of(n); }
KIND(nontemporal) { __builtin_nontemporal_store(bytes_of(n), (uint64_t*)at); }
KIND(nontemporal_vector) { __builtin_nontemporal_store((v2){0} + bytes_of(n), (v2*)at); }

KIND(from_assembler) { __asm__("movl %1, %0" : "=m"(*(uint32_t*)at) : "r"((uint32_t)bytes_of(n))); }
KIND(added_by_assembler) {
  __asm__("addq %1, %0" : "+m"(*(uint64_t*)at) : "r"(bytes_of(n)) : "cc");
}

/* loops */
KIND(loop_up) {
  for (unsigned i = 0; i < n; ++i) ((uint64_t*)at)[i] = bytes_of(i);
}
KIND(loop_down) {
  for (unsigned i = n; i-- > 0;) ((uint32_t*)at)[i] = (uint32_t)bytes_of(i);
}
KIND(loop_bytes) {
  for (unsigned i = 0; i < n; ++i) at[i] = (char)((i % 100) + 1);
}
KIND(loop_stride_32) {
  for (unsigned i = 0; i < n; ++i) *(uint64_t*)(at + 32 * i) = bytes_of(i);
}
KIND(loop_stride_64) {
  for (unsigned i = 0; i < n; ++i) *(uint64_t*)(at + 64 * i) = bytes_of(i);
}
KIND(loop_stride_72) {
  for (unsigned i = 0; i < n; ++i) *(uint64_t*)(at + 72 * i) = bytes_of(i);
}
KIND(loop_stride_136) {
  for (unsigned i = 0; i < n / 2; ++i) *(uint64_t*)(at + 136 * i) = bytes_of(i);
}
KIND(loop_stride_down_48) {
  for (unsigned i = n; i > 0; --i) *(uint64_t*)(at + 48 * i) = bytes_of(i);
}
KIND(loop_stride_unknown) {
  const unsigned stride = 8 * (n % 40 + 1);
  for (unsigned i = 0; i < 50; ++i) *(uint64_t*)(at + stride * i) = bytes_of(n);
}
KIND(loop_pointer) {
  for (uint64_t* p = (uint64_t*)at; p != (uint64_t*)at + n; p += 2) {
    if (p > (uint64_t*)at + n) break;
    p[0] = bytes_of(n);
  }
}
KIND(loop_same_place) {
  for (unsigned i = 0; i < n; ++i) *(uint64_t*)at += source[i];
}
KIND(loop_same_place_if) {
  for (unsigned i = 0; i < n; ++i)
    if (source[i] > 100) *(uint64_t*)at += n;
}
KIND(loop_if) {
  for (unsigned i = 0; i < n; ++i)
    if (source[i * 3] & 1) ((uint32_t*)at)[i] = (uint32_t)bytes_of(i);
}
KIND(loop_if_bytes) {
  for (unsigned i = 0; i < n; ++i)
    if (source[i * 3] & 1) at[i] = 7;
}
KIND(loop_if_far) {
  for (unsigned i = 0; i < n; ++i)
    if (source[i * 3] % 32 == 0) ((uint64_t*)at)[i] = bytes_of(i);
}
KIND(loop_left_early) {
  for (unsigned i = 0; i < 1000; ++i) {
    if (source[i] == (char)n) return;
    ((uint64_t*)at)[i] = bytes_of(i);
    if (i == n) break;
  }
}
KIND(loop_nested) {
  for (unsigned y = 0; y < n / 16 + 1; ++y)
    for (unsigned x = 0; x < n / 8; ++x) ((uint32_t*)at)[y * 200 + x] = (uint32_t)bytes_of(x);
}
KIND(loop_nested_columns) {
  for (unsigned x = 0; x < n / 8; ++x)
    for (unsigned y = 0; y < 12; ++y) ((uint32_t*)at)[y * 200 + x] = (uint32_t)bytes_of(x);
}
KIND(loop_of_fields) {
  struct of_two {
    uint64_t a, b, c;
  }* p = (struct of_two*)at;
  for (unsigned i = 0; i < n; ++i) p[i].a = bytes_of(i), p[i].c = bytes_of(i);
}
KIND(loop_scattered) {
  for (unsigned i = 0; i < n; ++i) ((uint64_t*)at)[(unsigned char)source[i] * 3] = bytes_of(n);
}
KIND(loop_scattered_if) {
  for (unsigned i = 0; i < n; ++i)
    if (source[i] & 1) ((uint32_t*)at)[((unsigned char)source[i]) * 7] = (uint32_t)bytes_of(n);
}
KIND(loop_copies) {
  for (unsigned i = 0; i < n; ++i) ((struct loose*)at)[i] = ((struct loose*)source)[i];
}
KIND(loop_overlapping) {
  for (unsigned i = 0; i < n; ++i) {
    *(uint64_t*)at = 1;
    at[4 + i] = 9;
  }
  *at = 5;
}
KIND(loop_of_two_places) {
  for (unsigned i = 0; i < n; ++i) {
    ((uint64_t*)at)[i] = bytes_of(n);
    ((uint64_t*)(at + 8192))[n - i] = bytes_of(n);
  }
}
KIND(loop_list) { /* loads the address of the next one from memory */
  struct node {
    struct node* next;
    uint64_t value;
  }* node = (struct node*)at;
  for (unsigned i = 0; i < n; ++i) {
    node->value = bytes_of(i);
    node->next = (struct node*)(at + 16 * ((i * 37) % 500));
    node = node->next;
  }
}
KIND(loop_do_while) {
  unsigned i = 0;
  do ((uint16_t*)at)[i] = (uint16_t)bytes_of(i);
  while (++i < n);
}
KIND(loop_of_atomics) {
  for (unsigned i = 0; i < n; ++i) atomic_fetch_add((_Atomic uint64_t*)at + i, bytes_of(n));
}
KIND(loop_prefix_sum) {
  uint64_t s = 1;
  for (unsigned i = 0; i < n; ++i) {
    s += (unsigned char)source[i] + 1u;
    ((uint64_t*)at)[i] = s;
  }
}
KIND(loop_switch) {
  for (unsigned i = 0; i < n; ++i) switch (source[i] & 3) {
      case 0:
        ((uint64_t*)at)[i] = 1;
        break;
      case 1:
        ((uint64_t*)at)[i + 1] = 2;
        break;
      case 2:
        at[i] = 3;
    }
}

/* with a commit in between */
KIND(call_between) {
  ((uint64_t*)at)[0] = bytes_of(n);
  ((uint64_t*)at)[40] = bytes_of(n);
  tracked_commit("call_between");
  ((uint64_t*)at)[80] = bytes_of(n);
}
KIND(calls_in_loop) {
  for (unsigned i = 0; i < n; ++i) {
    ((uint64_t*)at)[i] = bytes_of(i);
    if (source[i] % 64 == 0) tracked_commit("calls_in_loop");
  }
}
KIND(call_behind_loop) {
  for (unsigned i = 0; i < n; ++i) ((uint64_t*)at)[i] = bytes_of(i);
  tracked_commit("call_behind_loop");
  for (unsigned i = 0; i < n; ++i) ((uint64_t*)at)[i] += 1;
}
__attribute__((noinline)) static void commit_below(void) { tracked_commit("call_of_own_function"); }
KIND(call_of_own_function) {
  for (unsigned i = 0; i < n % 8 + 1; ++i) {
    ((uint64_t*)at)[i * 10] = bytes_of(i);
    commit_below();
  }
}
static void (*volatile commit_pointer)(void) = commit_below;
KIND(call_of_pointer) {
  *(uint64_t*)at = bytes_of(n);
  commit_pointer();
  at[100] = 1;
}
static jmp_buf where;
__attribute__((noinline)) static void jumps(char* at, unsigned n) {
  *(uint64_t*)(at + 104) = bytes_of(n);
  longjmp(where, 1);
}
KIND(long_jump) {
  if (setjmp(where) == 0) {
    *(uint64_t*)at = bytes_of(n);
    jumps(at, n);
  }
  tracked_commit("long_jump");
}
__attribute__((noinline)) static void take_values(char* at, unsigned n, ...) {
  va_list values;
  va_start(values, n);
  for (unsigned i = 0; i < 3; ++i) *(uint64_t*)(at + i * 80) = va_arg(values, uint64_t);
  va_end(values);
}
KIND(variable_arguments) { take_values(at, n, bytes_of(n), bytes_of(n), bytes_of(n)); }
KIND(tail_call) {
  *(uint64_t*)(at + 3000) = 1;
  take_values(at, n, bytes_of(n), bytes_of(n), bytes_of(n));
}
KIND(stack_or_tracked) {
  uint64_t local = 0;
  uint64_t* p = n & 1 ? &local : (uint64_t*)at;
  *p = bytes_of(n);
  __asm__ volatile("" : : "r"(p) : "memory");
}

#ifdef __SSE2__
KIND(sse_masked) {
  const __m128i mask = _mm_loadu_si128((const __m128i*)(source + n));
  _mm_maskmoveu_si128(
      _mm_set1_epi8(5),
      _mm_or_si128(mask, _mm_setr_epi8(-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)), at);
}
KIND(sse_half) { _mm_storel_pd((double*)at, _mm_set1_pd(n + 0.3)); }
KIND(sse_stream) { _mm_stream_pd((double*)at, _mm_set1_pd(n + 0.3)); }
KIND(sse_control) {
  UNUSED;
  *(unsigned*)at = _mm_getcsr();
}
#endif
#ifdef __AVX2__
KIND(avx_masked) {
  const __m256i mask = _mm256_setr_epi32((int)n << 31, (int)n << 30, (int)n << 29, (int)n << 28,
                                         (int)n << 27, 0, (int)n << 25, 0);
  _mm256_maskstore_epi32((int*)at, mask, _mm256_set1_epi32(0x01010101));
  _mm256_maskstore_pd((double*)(at + 400), mask, _mm256_set1_pd(0.1));
  _mm_maskstore_epi64((long long*)(at + 800), _mm256_castsi256_si128(mask),
                      _mm_set1_epi64x(0x0303030303030303));
}
#endif
#ifdef __AVX512F__
KIND(avx512_masked) { _mm512_mask_storeu_epi32(at, (__mmask16)n, _mm512_set1_epi32(0x09090909)); }
KIND(avx512_no_lane) { _mm512_mask_storeu_epi32(at, (__mmask16)(n - n), _mm512_set1_epi32(9)); }
KIND(avx512_ends_only) {
  _mm512_mask_storeu_epi64(at, 0x81, _mm512_set1_epi64((long long)bytes_of(n)));
}
KIND(avx512_compressed) {
  _mm512_mask_compressstoreu_epi32(at, (__mmask16)n, _mm512_set1_epi32(9));
}
KIND(avx512_narrowed) {
  _mm512_mask_cvtepi32_storeu_epi8(at, (__mmask16)n, _mm512_set1_epi32(9));
  _mm512_mask_cvtepi64_storeu_epi32(at + 300, (__mmask8)n, _mm512_set1_epi64(9));
}
KIND(avx512_scattered) {
  const __m512i index =
      _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32((int)n));
  _mm512_mask_i32scatter_epi32(at, (__mmask16)n, index, _mm512_set1_epi32(0x01010101), 4);
  _mm512_i64scatter_epi64(at + 32768, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(index)),
                          _mm512_set1_epi64(0x0303030303030303), 8);
}
#endif
#ifdef __AVX512BW__
KIND(avx512_bytes) {
  _mm512_mask_storeu_epi8(at, (__mmask64)bytes_of(n) << (n % 32), _mm512_set1_epi8(9));
}
#endif

struct kind {
  const char* name;
  void (*store)(char*, unsigned);
  unsigned align;
};
#define K(name, align) {#name, name, align}
static const struct kind kinds[] = {
    K(one_byte, 1),
    K(two_bytes, 2),
    K(four_bytes, 4),
    K(eight_bytes, 8),
    K(sixteen_bytes, 16),
    K(a_float, 4),
    K(a_double, 8),
    K(a_long_double, 16),
    K(a_pointer, 8),
    K(unaligned_two, 1),
    K(unaligned_four, 1),
    K(unaligned_eight, 1),
    K(unaligned_all, 1),
    K(misaligned_two, 1),
    K(misaligned_eight, 1),

    K(misaligned_fields, 1),
    K(bit_fields, 4),
    K(fields_far_apart, 8),
    K(fields_side_by_side, 8),
    K(one_of_two_branches, 8),
    K(copy_3, 1),
    K(copy_7, 1),
    K(copy_17, 1),
    K(copy_48, 1),
    K(copy_65, 1),
    K(copy_100, 1),
    K(copy_200, 1),
    K(copy_700, 1),
    K(returned_by_value, 1),
    K(memset_constant, 1),
    K(memset_large, 1),
    K(memset_variable, 1),
    K(memset_nothing, 1),
    K(memcpy_constant, 1),
    K(memcpy_variable, 1),
    K(memcpy_small, 1),
    K(memmove_variable, 1),
    K(memcpy_inline, 1),
    K(volatile_store, 8),
    K(atomic_relaxed, 4),
    K(atomic_release, 8),
    K(atomic_ordered, 2),
    K(atomic_exchanged, 8),
    K(atomic_added, 8),
    K(atomic_or, 1),
    K(atomic_nand, 4),
    K(atomic_compared, 8),
    K(atomic_compare_failed, 8),
    K(atomic_compare_failed_expected, 8),
    K(atomic_general_load, 8),
    K(atomic_general_store, 8),
    K(atomic_general_exchange, 8),
    K(atomic_general_compare, 8),
#ifdef __GCC_HAVE_SYNC_COMPARE_AND_SWAP_16
    K(atomic_sixteen, 16),
#endif
    K(vector_16, 16),
    K(vector_32, 32),
    K(vector_64, 64),
    K(vector_loose, 1),
    K(vector_24, 32),
    K(nontemporal, 8),
    K(nontemporal_vector, 16),
    K(from_assembler, 4),
    K(added_by_assembler, 8),
    K(loop_up, 8),
    K(loop_down, 4),
    K(loop_bytes, 1),
    K(loop_stride_32, 8),
    K(loop_stride_64, 8),
    K(loop_stride_72, 8),
    K(loop_stride_136, 8),
    K(loop_stride_down_48, 8),
    K(loop_stride_unknown, 8),
    K(loop_pointer, 8),
    K(loop_same_place, 8),
    K(loop_same_place_if, 8),
    K(loop_if, 4),
    K(loop_if_bytes, 1),
    K(loop_if_far, 8),
    K(loop_left_early, 8),
    K(loop_nested, 4),
    K(loop_nested_columns, 4),
    K(loop_of_fields, 8),
    K(loop_scattered, 8),
    K(loop_scattered_if, 4),
    K(loop_copies, 1),
    K(loop_overlapping, 8),
    K(loop_of_two_places, 8),
    K(loop_list, 8),
    K(loop_do_while, 2),
    K(loop_of_atomics, 8),
    K(loop_prefix_sum, 8),
    K(loop_switch, 8),
    K(call_between, 8),
    K(calls_in_loop, 8),
    K(call_behind_loop, 8),
    K(call_of_own_function, 8),
    K(call_of_pointer, 8),
    K(long_jump, 8),
    K(variable_arguments, 8),
    K(tail_call, 8),
    K(stack_or_tracked, 8),
#ifdef __SSE2__
    K(sse_masked, 1),
    K(sse_half, 8),
    K(sse_stream, 16),
    K(sse_control, 4),
#endif
#ifdef __AVX2__
    K(avx_masked, 1),
#endif
#ifdef __AVX512F__
    K(avx512_masked, 4),
    K(avx512_no_lane, 4),
    K(avx512_ends_only, 8),
    K(avx512_compressed, 4),
    K(avx512_narrowed, 4),
    K(avx512_scattered, 4),
#endif
#ifdef __AVX512BW__
    K(avx512_bytes, 1),
#endif
};

int main(void) {
  for (unsigned i = 0; i < sizeof source; ++i) source[i] = (char)(tracked_random(255) + 1);
  for (unsigned round = 0; round < 40; ++round) {
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
      char* at = tracked_begin() + 64 * tracked_random(16) +
                 kinds[i].align * tracked_random(64 / kinds[i].align);
      kinds[i].store(at, tracked_random(250) + 1);
      tracked_check(kinds[i].name, 1);
    }
  }
  return tracked_end();
}
