/* Marking: the calls behind a store. This file is compiled with -mgeneral-regs-only, so
 * vellum_mark_card() can keep every register: its callers have saved none. It is in C because the
 * C++ library's headers do not compile with that option. */
#include <sys/single_threaded.h>
#include <vellum/cards.h>

#include "base/processor.h"
#include "memory/cards/layout.h"

_Static_assert((VELLUM_WINDOW_BEGIN >> VELLUM_CARD_SHIFT) + VELLUM_CARD_BIAS == 0x340000000000, "");

/* With one thread, an instruction needs no lock: a signal handler that marks interrupts between two
 * instructions, never within one. A compiler turns C's operators into several, or locked ones. */
#if defined(VELLUM_X86_64)
static inline uint8_t unlocked_set(uint8_t* byte) {
  uint8_t was = 0;
  const uint8_t set = 1;
  __asm__ volatile("cmpxchgb %2, %1" : "+a"(was), "+m"(*byte) : "q"(set) : "memory", "cc");
  return was;
}
static inline uint64_t unlocked_increment(uint64_t* count) {
  uint64_t was = 1;
  __asm__ volatile("xaddq %0, %1" : "+r"(was), "+m"(*count) : : "memory", "cc");
  return was;
}
#else
static inline uint8_t unlocked_set(uint8_t* byte) {
  return __atomic_exchange_n(byte, 1, __ATOMIC_RELAXED);
}
static inline uint64_t unlocked_increment(uint64_t* count) {
  return __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}
#endif

/* Whether the page's byte was clear. Ordering: an exchange even where the byte is already set: it
 * is a full barrier. A taker that later clears the byte and then reads the cards finds the card
 * that was set before. A single thread needs none of this. */
static inline int first_of_page(uint64_t address) {
  uint8_t* byte = vellum_page_byte_of(address);
  if (__libc_single_threaded != 0) return unlocked_set(byte) == 0;
  return __atomic_exchange_n(byte, 1, __ATOMIC_SEQ_CST) == 0;
}

/* An entry is reserved before it is written: the taker waits for the marker in between. */
static inline void enqueue(struct vellum_card_queue* queue, uint64_t address) {
  /* A locked addition would wait for the non-temporal stores of the last commit. */
  const uint64_t at = __libc_single_threaded != 0
                          ? unlocked_increment(&queue->head)
                          : __atomic_fetch_add(&queue->head, 1, __ATOMIC_ACQ_REL);
  const uint64_t page = (address - queue->begin_address) >> 12;
  __atomic_store_n(&queue->entries[at & queue->entry_mask], (uint32_t)(page + 1), __ATOMIC_RELEASE);
}

/* Between setting the card and queueing the page, another thread may store to the same card, find
 * it set, and commit. A marker is therefore counted before it sets a byte, and take() waits for all
 * counted markers (TrackedRange::take() explains why that suffices). Null: with one thread no marker
 * is counted, and take() does not wait. */
static inline uint64_t* count_marker(struct vellum_card_queue* queue) {
  if (queue == 0 || __libc_single_threaded != 0) return 0;
  uint64_t* count = &queue->in_flight[__atomic_load_n(&queue->phase, __ATOMIC_RELAXED)];
  __atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST);
  return count;
}

/* Outside any range (an untracked file in the window), no thread takes. */
static inline void mark_within_page(uint64_t address, uint64_t last) {
  struct vellum_card_queue* queue = __atomic_load_n(vellum_granule_of(address), __ATOMIC_ACQUIRE);
  uint64_t* const counted = count_marker(queue);
  uint8_t* const end = vellum_card_of(last);
  for (uint8_t* card = vellum_card_of(address); card <= end; ++card)
    __atomic_store_n(card, 1, __ATOMIC_RELEASE);
  if (first_of_page(address) && queue != 0) enqueue(queue, address);
  if (counted != 0) __atomic_fetch_sub(counted, 1, __ATOMIC_RELEASE);
}

void vellum_mark_card(const void* address) {
  mark_within_page((uint64_t)address, (uint64_t)address);
}

void vellum_mark(const void* address, size_t length_bytes) {
  uint64_t at = (uint64_t)address;
  if (length_bytes == 0 || at >> VELLUM_WINDOW_SHIFT != VELLUM_WINDOW_INDEX) return;
  const uint64_t last = at + length_bytes - 1;
  while (at <= last) {
    const uint64_t page_last = at | 4095;
    mark_within_page(at, last < page_last ? last : page_last);
    at = page_last + 1;
  }
}
