// Marking: what is called behind a store. This file is compiled with -mgeneral-regs-only, so that
// vellum_mark_card() keeps every register: its callers have saved none.
#include <sys/single_threaded.h>
#include <vellum/cards.h>

#include "cards/table.hpp"

namespace vellum::cards {
namespace {

static_assert(VELLUM_WINDOW_INDEX << VELLUM_WINDOW_SHIFT == kWindowBegin);
static_assert((VELLUM_WINDOW_INDEX + 1) << VELLUM_WINDOW_SHIFT == kWindowEnd);
static_assert((kWindowBegin >> VELLUM_CARD_SHIFT) + VELLUM_CARD_BIAS == kTableBegin);
static_assert(kTableBegin + ((kWindowEnd - kWindowBegin) >> VELLUM_CARD_SHIFT) <= kPageTableBegin);
static_assert(1U << VELLUM_CARD_SHIFT == kCardBytes);

// Whether the page's byte was clear. Ordering: an exchange, also where the byte is set already, as
// it is a full barrier: who clears the byte afterwards, and then reads the cards, finds the card
// that was set before. A single thread needs none of it.
inline bool first_of_page(std::uint64_t address) noexcept {
  std::atomic<std::uint8_t>& byte = page_byte(address);
  if (__libc_single_threaded == 0) return byte.exchange(1) == 0;
  const bool first = byte.load(std::memory_order_relaxed) == 0;
  byte.store(1, std::memory_order_relaxed);
  return first;
}

// A slot is taken before it is written: take() waits for the one in between.
inline void enqueue(std::uint64_t address) noexcept {
  Queue* queue = granule(address).load(std::memory_order_acquire);
  if (queue == nullptr) return;
  const std::uint64_t at = queue->head.fetch_add(1, std::memory_order_acq_rel) & queue->slot_mask;
  const std::uint64_t page = (address - queue->begin_address) / kPageBytes;
  queue->slots[at].store(static_cast<std::uint32_t>(page + 1), std::memory_order_release);
}

inline void mark_within_page(std::uint64_t address, std::uint64_t last) noexcept {
  for (std::uint64_t card = address / kCardBytes; card <= last / kCardBytes; ++card)
    card_byte(card * kCardBytes).store(1, std::memory_order_release);
  if (first_of_page(address)) enqueue(address);
}

}  // namespace
}  // namespace vellum::cards

extern "C" __attribute__((no_caller_saved_registers)) void vellum_mark_card(const void* address) {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  vellum::cards::mark_within_page(at, at);
}

extern "C" void vellum_mark(const void* address, size_t length_bytes) {
  using namespace vellum::cards;
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  if (length_bytes == 0 || !in_window(begin)) return;
  const std::uint64_t last = begin + length_bytes - 1;
  for (std::uint64_t at = begin; at <= last;) {
    const std::uint64_t page_end = at / kPageBytes * kPageBytes + kPageBytes;
    mark_within_page(at, last < page_end ? last : page_end - 1);
    at = page_end;
  }
}
