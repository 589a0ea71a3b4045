#include "memory/cards/tracked_range.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vellum/cards.h>

#include <bit>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/processor.h"

namespace vellum::cards {
namespace {

constexpr std::uint64_t kMaxCapacityBytes = 4ULL << 40;
constexpr std::uint64_t kPrefetchAhead = 8;  // entries of the queue

std::uint64_t granules_of(std::uint64_t bytes) {
  return (bytes + (1ULL << kGranuleShift) - 1) >> kGranuleShift;
}

// Makes every running thread of the process pass a barrier before this returns. Without it take()
// would miss the store of a thread that found its card marked just before take() cleared it, and
// whose store is still in its store buffer.
void all_threads_pass_barrier() noexcept {
  if (__libc_single_threaded != 0) return;
  static const bool registered =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  if (registered && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return;
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);  // slow, Linux 4.3
}

// With one thread: one instruction, without a lock, so a signal handler marks before or after it.
void unlocked_clear(std::uint64_t* eight, std::uint64_t set) noexcept {
#if defined(VELLUM_X86_64)
  __asm__ volatile("andq %1, %0" : "+m"(*eight) : "r"(~set) : "memory", "cc");
#else
  __atomic_fetch_and(eight, ~set, __ATOMIC_RELAXED);
#endif
}

// Returns the tables' pages to the kernel, which clears them.
void clear_tables(std::uint64_t begin, std::uint64_t capacity_bytes) noexcept {
  const std::uint64_t bytes = granules_of(capacity_bytes) << kGranuleShift;
  madvise(vellum_card_of(begin), bytes / kCardBytes, MADV_DONTNEED);
  madvise(vellum_page_byte_of(begin), bytes / kPageBytes, MADV_DONTNEED);
}

bool reserve_at(std::uint64_t address, std::uint64_t bytes) {
  void* at = reinterpret_cast<void*>(address);
  void* got = mmap(at, bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == at) return true;
  if (got != MAP_FAILED) munmap(got, bytes);
  return false;
}

void set_granules(std::uint64_t address, std::uint64_t count, vellum_card_queue* queue) {
  for (std::uint64_t i = 0; i < count; ++i)
    __atomic_store_n(vellum_granule_of(address + (i << kGranuleShift)), queue, __ATOMIC_RELEASE);
}

// Claims the granules of a range for `queue`, all or none. Other copies of this code may claim at
// the same time, hence compare and swap.
bool claim(std::uint64_t address, std::uint64_t bytes, vellum_card_queue* queue) {
  std::uint64_t claimed = 0;
  for (; claimed < granules_of(bytes); ++claimed) {
    vellum_card_queue* expected = nullptr;
    if (!__atomic_compare_exchange_n(vellum_granule_of(address + (claimed << kGranuleShift)),
                                     &expected, queue, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      break;
  }
  if (claimed == granules_of(bytes) && reserve_at(address, bytes)) return true;
  set_granules(address, claimed, nullptr);
  return false;
}

std::uint64_t place(std::uint64_t bytes, std::uint64_t wanted, vellum_card_queue* queue) {
  const std::uint64_t span = granules_of(bytes) << kGranuleShift;
  if (wanted != 0) {
    if (wanted % (1ULL << kGranuleShift) != 0 || !in_window(wanted) || span > kWindowEnd - wanted)
      fail(Errc::invalid_argument,
           "a tracked range begins at a multiple of 4 GiB between 0x200000000000 and "
           "0x300000000000");
    if (claim(wanted, bytes, queue)) return wanted;
    fail(Errc::busy, "the address of a tracked range is in use");
  }
  for (std::uint64_t at = kWindowBegin; span <= kWindowEnd - at; at += 1ULL << kGranuleShift)
    if (claim(at, bytes, queue)) return at;
  fail(Errc::out_of_memory, "no room for another tracked range of {} bytes of address space",
       bytes);
}

std::uint32_t* map_entries(std::uint64_t count) {
  void* at = mmap(nullptr, count * sizeof(std::uint32_t), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    fail(Errc::out_of_memory, "no memory for the queue of a tracked range: {}",
         std::strerror(errno));
  return static_cast<std::uint32_t*>(at);
}

}  // namespace

TrackedRange::TrackedRange(std::uint64_t capacity_bytes, std::uint64_t address)
    : capacity_bytes_(capacity_bytes), queue_(std::make_unique<vellum_card_queue>()) {
  if (capacity_bytes == 0 || capacity_bytes % kPageBytes != 0 || capacity_bytes > kMaxCapacityBytes)
    fail(Errc::invalid_argument, "a tracked range has a multiple of 4096 bytes, at most 4 TiB");
  reserve_table();
  const std::uint64_t entries = std::bit_ceil(capacity_bytes / kPageBytes);
  queue_->entries = map_entries(entries);
  queue_->entry_mask = entries - 1;
  try {
    // No thread marks before the constructor returns, so the queue may get its address late.
    queue_->begin_address = place(capacity_bytes, address, queue_.get());
  } catch (...) {
    munmap(queue_->entries, entries * 4);
    throw;
  }
  // Untracked memory, such as a file without cards, may have been marked at these addresses before.
  // Its marks would keep this range's pages out of the queue.
  clear_tables(queue_->begin_address, capacity_bytes);
  data_ = reinterpret_cast<std::byte*>(queue_->begin_address);
}

TrackedRange::~TrackedRange() {
  const std::uint64_t begin = queue_->begin_address;
  munmap(data_, capacity_bytes_);
  clear_tables(begin, capacity_bytes_);
  set_granules(begin, granules_of(capacity_bytes_), nullptr);
  munmap(queue_->entries, (queue_->entry_mask + 1) * sizeof(std::uint32_t));
}

// Ordering: the page's byte is cleared, with a full barrier, before its cards are read. A later
// marker finds it clear and queues the page again; an earlier one has set its card. Only cards seen
// set are cleared: others may be set meanwhile.
std::uint64_t TrackedRange::take_page(std::uint64_t page_address) noexcept {
  const bool single_threaded = __libc_single_threaded != 0;
  if (single_threaded) {
    __atomic_store_n(vellum_page_byte_of(page_address), 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
  } else {
    __atomic_exchange_n(vellum_page_byte_of(page_address), 0, __ATOMIC_SEQ_CST);
  }
  auto* eights = reinterpret_cast<std::uint64_t*>(vellum_card_of(page_address));
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const std::uint64_t set = __atomic_load_n(&eights[i], __ATOMIC_ACQUIRE);
    if (set == 0) continue;
    // Bytes are 0 or 1: the product gathers them into the highest byte, the first lowest.
    mask |= ((set * 0x0102040810204080ULL) >> 56) << (i * 8);
    if (single_threaded) {
      unlocked_clear(&eights[i], set);
    } else {
      __atomic_fetch_and(&eights[i], ~set, __ATOMIC_ACQ_REL);
    }
  }
  return mask;
}

// Returns when every marker counted at the call has ended. New markers use the other count, so they
// cannot prolong the wait. It waits for both counts, not only that of the ending phase: a marker
// preempted between loading the phase and counting may be in the older one.
void TrackedRange::wait_for_markers() noexcept {
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t old = __atomic_load_n(&queue_->phase, __ATOMIC_RELAXED);
    __atomic_store_n(&queue_->phase, old ^ 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&queue_->in_flight[old], __ATOMIC_ACQUIRE) != 0) sched_yield();
  }
}

// Of the entry at `at`, if it is written: its page's cards, and the byte that marks it as queued.
void TrackedRange::prefetch_page(std::uint64_t at, std::uint64_t head) const noexcept {
  if (at >= head) return;
  const std::uint32_t value =
      __atomic_load_n(&queue_->entries[at & queue_->entry_mask], __ATOMIC_RELAXED);
  if (value == 0) return;
  const std::uint64_t address = queue_->begin_address + std::uint64_t{value - 1} * kPageBytes;
  __builtin_prefetch(vellum_card_of(address), 1);
  __builtin_prefetch(vellum_page_byte_of(address), 1);
}

// Why all stores before the call are found. A store whose card was clear was marked by its own
// thread, before the call. A store whose card was set relies on another thread X, which had counted
// before setting it, so the first wait is for X. X has queued the page, or has found the page's
// byte set by a third thread W, which is about to queue it. W had counted before setting that byte,
// and so before X ended, which is before the second wait. The head is read after both.
void TrackedRange::take(std::vector<MarkedPage>& out) {
  if (__libc_single_threaded == 0) {
    wait_for_markers();
    wait_for_markers();
  }
  const std::uint64_t head = __atomic_load_n(&queue_->head, __ATOMIC_ACQUIRE);
  out.reserve(out.size() + (head - queue_->tail));
  for (; queue_->tail != head; ++queue_->tail) {
    std::uint32_t* entry = &queue_->entries[queue_->tail & queue_->entry_mask];
    std::uint32_t value = 0;
    while ((value = __atomic_load_n(entry, __ATOMIC_ACQUIRE)) == 0) sched_yield();
    *entry = 0;
    prefetch_page(queue_->tail + kPrefetchAhead, head);
    const std::uint32_t page = value - 1;
    assert(std::uint64_t{page} * kPageBytes < capacity_bytes_);
    const std::uint64_t cards = take_page(queue_->begin_address + std::uint64_t{page} * kPageBytes);
    if (cards != 0) out.push_back({page, cards});
  }
  all_threads_pass_barrier();
}

void TrackedRange::put_back(std::span<const MarkedPage> pages) noexcept {
  for (const MarkedPage& marked : pages) {
    assert(std::uint64_t{marked.page} * kPageBytes < capacity_bytes_);
    for (std::uint64_t left = marked.cards; left != 0; left &= left - 1) {
      const auto card = static_cast<std::uint64_t>(std::countr_zero(left));
      vellum_mark(data_ + std::uint64_t{marked.page} * kPageBytes + card * kCardBytes, kCardBytes);
    }
  }
}

bool TrackedRange::clean() const noexcept {
  return __atomic_load_n(&queue_->head, __ATOMIC_ACQUIRE) == queue_->tail;
}

bool verify_by_environment() {
  const char* value = std::getenv("VELLUM_VERIFY_CARDS");
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

void throw_missed_store(const std::string& what, const std::byte* data, MarkedPage missed) {
  const std::uint64_t offset = std::uint64_t{missed.page} * kPageBytes +
                               static_cast<unsigned>(std::countr_zero(missed.cards)) * kCardBytes;
  char address[32];
  std::snprintf(address, sizeof address, "%p", static_cast<const void*>(data + offset));
  fail(Errc::corrupted,
       "{}: a store to page {} (offset {}, address {}) was not marked: code that vellum-clang has "
       "not compiled has stored there, or vellum-clang has missed a store",
       what, missed.page, offset, address);
}

}  // namespace vellum::cards
