/* memory/cards/layout.h: the memory layout of the card table, for mark.c and the rest of this layer.
 *
 * The table is at fixed addresses, which are reserved on first use and cost nothing until they are
 * accessed. All copies of this code in a process (a static library and a shared one) share it: the
 * second copy finds the table of the first.
 *
 * A marker sets the card's byte, then the page's. If the page's byte was clear, it adds the page to
 * the queue of its range. A page is therefore in its queue at most once between two takes, a queue
 * with an entry for each page never overflows, and taking costs time per page with marks. */
#ifndef VELLUM_CARDS_LAYOUT_H
#define VELLUM_CARDS_LAYOUT_H

#include <stdint.h>
#include <vellum/cards.h>

#define VELLUM_WINDOW_BEGIN (VELLUM_WINDOW_INDEX << VELLUM_WINDOW_SHIFT)
#define VELLUM_WINDOW_END ((VELLUM_WINDOW_INDEX + 1) << VELLUM_WINDOW_SHIFT)
#define VELLUM_PAGE_TABLE UINT64_C(0x344000000000)
#define VELLUM_DIRECTORY UINT64_C(0x345000000000)
/* A range starts at a multiple of 4 GiB, and its granules contain nothing else. */
#define VELLUM_GRANULE_SHIFT 32
#define VELLUM_GRANULES (1 << (VELLUM_WINDOW_SHIFT - VELLUM_GRANULE_SHIFT))

/* The queue of one range. All members but the first three are accessed atomically. In a process
 * with threads, a marker counts from before it sets the card until its page is queued: mark.c. */
struct vellum_card_queue {
  uint64_t begin_address;
  uint32_t* entries; /* a page's number in the range, plus 1; 0: free, or not yet written */
  uint64_t entry_mask;
  uint64_t head __attribute__((aligned(64)));  /* markers append here */
  uint64_t tail __attribute__((aligned(64)));  /* only the taker uses it */
  uint64_t phase __attribute__((aligned(64))); /* 0 or 1: where markers count; the taker flips it */
  uint64_t in_flight[2];
};

/* The content at VELLUM_DIRECTORY. */
struct vellum_card_directory {
  uint64_t layout; /* VELLUM_CARD_LAYOUT, once it is ready */
  struct vellum_card_queue* granules[VELLUM_GRANULES];
};
#define VELLUM_CARD_LAYOUT (UINT64_C(0x56454c4c43310000) + sizeof(struct vellum_card_queue))

static inline uint8_t* vellum_card_of(uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): this is intended
  return (uint8_t*)((address >> VELLUM_CARD_SHIFT) + VELLUM_CARD_BIAS);
}
static inline uint8_t* vellum_page_byte_of(uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the same
  return (uint8_t*)(VELLUM_PAGE_TABLE + ((address - VELLUM_WINDOW_BEGIN) >> 12));
}
static inline struct vellum_card_queue** vellum_granule_of(uint64_t address) {
  struct vellum_card_directory* directory = (struct vellum_card_directory*)VELLUM_DIRECTORY;
  return &directory->granules[(address - VELLUM_WINDOW_BEGIN) >> VELLUM_GRANULE_SHIFT];
}

#endif /* VELLUM_CARDS_LAYOUT_H */
