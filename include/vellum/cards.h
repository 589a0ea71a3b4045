/* vellum/cards.h: reports of stores, by a compiler or a caller.
 *
 * A card is 64 bytes of a tracked range, one cache line. A program marks the cards that it has
 * stored to; the next commit takes the marked cards, and nothing else. Code compiled by
 * vellum-clang and vellum-clang++ marks after every store by itself (docs/cards.md); other code
 * calls vellum_mark(), or leaves its stores to the page tracker (Tracker::cards_and_pages). Card
 * marking was invented for generational garbage collection (Wilson and Moher, OOPSLA 1989);
 * tracking stores by the compiler for durable memory is Snapshot's idea (Mahar et al., ICCD 2023).
 *
 * Tracked ranges are in one window of the address space, and their cards at a fixed distance. "Is
 * it tracked" is thus one compare, and "which card" one shift and one addition: nothing is loaded.
 * vellum-clang compiles the numbers below into programs: after a change of any of them, all
 * programs must be recompiled.
 *
 * Order: the store first, its mark afterwards. A commit clears marks first and copies afterwards,
 * so a concurrent store is in this commit or in the next, never lost.
 *
 * Everything here may be called from any thread, and from a signal handler. Commits may not be
 * called from a signal handler: they wait until marks that have begun are complete, and the handler
 * may have interrupted one. x86-64 only.
 */
#ifndef VELLUM_CARDS_H
#define VELLUM_CARDS_H

#include <stddef.h>
#include <stdint.h>

#define VELLUM_CARD_SHIFT 6                       /* 64 bytes a card */
#define VELLUM_WINDOW_SHIFT 44                    /* 16 TiB */
#define VELLUM_WINDOW_INDEX UINT64_C(2)           /* address >> VELLUM_WINDOW_SHIFT */
#define VELLUM_CARD_BIAS UINT64_C(0x338000000000) /* card = (address >> 6) + this, a byte each */

#ifdef __cplusplus
extern "C" {
#endif

/* Reports that [address, address + length_bytes) has been stored to. Outside of the window, and for
 * 0 bytes, it does nothing. REQUIRES: inside the window, the range is tracked. */
void vellum_mark(const void* address, size_t length_bytes);

/* vellum-clang calls this when the card of `address` is clear: sets it. REQUIRES: `address` is in
 * the window, and tracked. It keeps every register, so that its callers need not save any (in LLVM:
 * calling convention preserve_all). The compiler's plugin is for x86-64; on other processors this
 * is a plain function. */
#if defined(__x86_64__)
__attribute__((no_caller_saved_registers))
#endif
void vellum_mark_card(const void* address);

#ifdef __cplusplus
}
#endif

#endif /* VELLUM_CARDS_H */
