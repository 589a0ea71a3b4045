/* Marking: what is called behind a store. Compiled with -mgeneral-regs-only, so that
 * vellum_mark_card() can keep every register: its callers have saved none. In C, because the C++
 * library's headers do not compile so. */
#include <sys/single_threaded.h>
#include <vellum/cards.h>

#include "cards/layout.h"

_Static_assert((VELLUM_WINDOW_BEGIN >> VELLUM_CARD_SHIFT) + VELLUM_CARD_BIAS == 0x340000000000, "");

/* Whether the page's byte was clear. Ordering: an exchange, also where the byte is set already, as
 * it is a full barrier: who clears the byte afterwards, and then reads the cards, finds the card
 * that was set before. A single thread needs none of it. */
static inline int first_of_page(uint64_t address) {
  uint8_t* byte = vellum_page_byte_of(address);
  if (__libc_single_threaded == 0) return __atomic_exchange_n(byte, 1, __ATOMIC_SEQ_CST) == 0;
  const int first = *byte == 0;
  *byte = 1;
  return first;
}

/* A slot is taken before it is written: the taker waits for the one in between. */
static inline void enqueue(uint64_t address) {
  struct vellum_card_queue* queue = __atomic_load_n(vellum_granule_of(address), __ATOMIC_ACQUIRE);
  if (queue == 0) return;
  /* A locked addition would wait for the non-temporal stores of the last commit. */
  uint64_t at = queue->head;
  if (__libc_single_threaded != 0) {
    queue->head = at + 1;
  } else {
    at = __atomic_fetch_add(&queue->head, 1, __ATOMIC_ACQ_REL);
  }
  const uint64_t page = (address - queue->begin_address) >> 12;
  __atomic_store_n(&queue->slots[at & queue->slot_mask], (uint32_t)(page + 1), __ATOMIC_RELEASE);
}

static inline void mark_within_page(uint64_t address, uint64_t last) {
  uint8_t* const end = vellum_card_of(last);
  for (uint8_t* card = vellum_card_of(address); card <= end; ++card)
    __atomic_store_n(card, 1, __ATOMIC_RELEASE);
  if (first_of_page(address)) enqueue(address);
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
