#include "memory/engine/sigsegv_memory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/memory/thread_sanitizer.hpp"
#include "memory/kernel/kernel.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {

SigsegvMemory::SigsegvMemory(const MemoryOptions& options,
                             std::shared_ptr<store::PageSource> source)
    : PagedMemory(options, std::move(source),
                  {.fault_signal = SIGSEGV,
                   .zeros_take_memory = true,
                   .writes_unmapped = false,
                   .arms_holes = false,
                   .unshared_are_base_copies = true}),
      dirty_((options.capacity_bytes / kPageBytes / kGroupPages + 1) * sizeof(std::uint64_t)),
      summary_((options.capacity_bytes / kPageBytes / kGroupPages / 64 + 1) *
               sizeof(std::uint64_t)),
      pins_((options.capacity_bytes / options.chunk_bytes + 1) * sizeof(std::uint16_t)) {}

SigsegvMemory::~SigsegvMemory() {
  stop_service();
  if (pagemap_ >= 0) close(pagemap_);
  if (mem_ >= 0) close(mem_);
}

void SigsegvMemory::begin_service() {
  pagemap_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  mem_ = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  if (options_.writable) join_islands();
  add_route(range_.data(), range_.end(), this);
}

// The kernel joins neighbouring mappings only when the private pages of both are on one list
// (anon_vma). A page written in a mapping of its own starts a list of its own, and the mappings
// stay separate permanently, unless the mapping from which all are split already had a list. One
// private page, dropped again, creates that list.
void SigsegvMemory::join_islands() {
  if (mprotect(data(), options_.capacity_bytes, PROT_READ | PROT_WRITE) != 0) return;
  *static_cast<volatile std::byte*>(data()) = std::byte{0};
  madvise(data(), kPageBytes, MADV_DONTNEED);
  state_.backing.drop_base_copies(0, 1);  // the hole's page, which that write has filled
  // Left open, the range would show holes as zeros instead of faulting.
  if (mprotect(data(), options_.capacity_bytes, PROT_NONE) != 0) {
    fail(Errc::out_of_memory, "cannot protect the region: {}", std::strerror(errno));
  }
}

int SigsegvMemory::protect(PageNumber first, std::size_t count, int access) noexcept {
  const PageNumber limit = size_bytes() / kPageBytes;  // beyond it, nothing is ever accessible
  if (first >= limit) return 0;
  count = std::min<std::size_t>(count, limit - first);
  return mprotect(address_of(first), count * kPageBytes, access) == 0 ? 0 : errno;
}

// Reading a hole of the shared file would add a page to it.
int SigsegvMemory::map_zero(PageNumber first, std::size_t count) noexcept {
  return options_.shared ? map_file(-1, first, count, PROT_READ) : map_present(first, count);
}

// Replaces the mapping there. -1: no file, but zeros.
int SigsegvMemory::map_file(int file, PageNumber first, std::size_t count, int access) noexcept {
  const std::size_t bytes = count * kPageBytes;
  const int flags = MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED | (file < 0 ? MAP_ANONYMOUS : 0);
  const off_t offset = file < 0 ? 0 : static_cast<off_t>(first * kPageBytes);
  const base::OrderedByKernel order;
  if (mmap(address_of(first), bytes, access, flags, file, offset) == MAP_FAILED) return errno;
  madvise(address_of(first), bytes, MADV_DONTFORK);
  return 0;
}

int SigsegvMemory::unmap_shared(PageNumber first, std::size_t count) noexcept {
  const int error = protect(first, count, PROT_NONE);
  return error != 0 ? error : drop_pages(address_of(first), count * kPageBytes);
}

// In the file of base copies, so that the kernel joins neighbours to one mapping.
int SigsegvMemory::place_unshared(PageNumber first, std::size_t count,
                                  const std::byte* content) noexcept {
  int error = state_.backing.write(first, {content, count * kPageBytes});
  if (error != 0) {
    state_.backing.punch(first, count);
    return error;
  }
  state_.backing.note_base_copies(first, count);
  error = map_file(state_.backing.file(), first, count, PROT_READ);
  if (error != 0) state_.backing.drop_base_copies(first, count);
  return error;
}

int SigsegvMemory::remove_unshared(PageNumber first, std::size_t count) noexcept {
  const int error = map_file(options_.shared->descriptor(), first, count, PROT_NONE);
  if (error == 0) state_.backing.drop_base_copies(first, count);
  return error;
}

int SigsegvMemory::map_present(PageNumber first, std::size_t count) noexcept {
  const int error = protect(first, count, PROT_READ);
  // Out of mappings: the chunk stays closed; resolve_present() serves its next fault and opens a
  // larger range.
  return error == ENOMEM ? 0 : error;
}

int SigsegvMemory::resolve_present(PageNumber page, bool is_write) noexcept {
  const std::size_t group = page / kGroupPages;
  const PageNumber chunk_first = chunk_of(page) * chunk_pages();
  int error = 0;
  {
    const std::lock_guard lock(lock_of(group));
    if (!is_present(page)) return 0;  // pairs with freeze()
    const std::uint64_t chunk_bits = chunk_mask() << (chunk_first % kGroupPages);
    const std::uint64_t dirty = dirty_word(group).load(std::memory_order_relaxed);
    if (is_write) {
      const bool whole_chunk = (dirty & chunk_bits) != 0;
      error =
          whole_chunk ? open_for_writing(chunk_first, chunk_pages()) : open_for_writing(page, 1);
    } else if ((dirty & chunk_bits) == 0) {
      error = protect(chunk_first, chunk_pages(), PROT_READ);
    } else if ((dirty >> (page % kGroupPages) & 1) == 0) {
      // Only this page: others of the chunk are open for writing.
      error = protect(page, 1, PROT_READ);
    } else {
      error = protect(page, 1, PROT_READ | PROT_WRITE);
    }
  }
  return error == ENOMEM ? open_wider(page) : error;
}

void SigsegvMemory::note_dirty(PageNumber first, std::size_t count) noexcept {
  for (PageNumber page = first; page < first + count;) {
    const std::size_t group = page / kGroupPages;
    const std::size_t bit = page % kGroupPages;
    const auto n = std::min<std::size_t>(kGroupPages - bit, first + count - page);
    const std::uint64_t mask = bits_below(n) << bit;
    const std::uint64_t old = dirty_word(group).fetch_or(mask, std::memory_order_relaxed);
    state_.counters.count_opened(group, static_cast<std::size_t>(std::popcount(mask & ~old)));
    summary_word(group).fetch_or(1ULL << (group % 64), std::memory_order_release);
    page += n;
  }
}

// REQUIRES: the group's lock is held, and the pages are in one group.
int SigsegvMemory::open_for_writing(PageNumber first, std::size_t count) noexcept {
  assert(count != 0 && first / kGroupPages == (first + count - 1) / kGroupPages);
  const PageNumber limit = size_bytes() / kPageBytes;  // it may cut the chunk
  count = std::min<std::size_t>(count, limit - first);
  note_dirty(first, count);
  return protect(first, count, PROT_READ | PROT_WRITE);
}

// The process is out of mappings: joins increasingly large ranges around `page` into one open
// range.
int SigsegvMemory::open_wider(PageNumber page) noexcept {
  const PageNumber pages = format::pages_in(size_bytes());
  store::ReadFailure failure;
  for (std::size_t span = 2 * kGroupPages;; span *= 2) {
    const PageNumber first = page / span * span;
    const std::size_t count = std::min<std::size_t>(span, pages - first);
    hold(first, count);
    if (!make_present(first, count, failure)) {
      release(first, count);
      return EIO;
    }
    // All locks, in order: take_group() must not run for a group in the range meanwhile.
    for (auto& lock : locks_) lock.lock();
    if (options_.writable) note_dirty(first, count);
    const int error = protect(first, count, options_.writable ? PROT_READ | PROT_WRITE : PROT_READ);
    for (auto& lock : locks_) lock.unlock();
    release(first, count);
    if (error != ENOMEM || count == pages) return error;
  }
}

void SigsegvMemory::find_dirty(std::vector<PageNumber>& out) {
  const std::size_t groups = (size_bytes() / kPageBytes + kGroupPages - 1) / kGroupPages;
  for (std::size_t base = 0; base < groups; base += 64) {
    std::uint64_t summary = summary_word(base).exchange(0, std::memory_order_acq_rel);
    for (; summary != 0; summary &= summary - 1) {
      const std::size_t group = base + static_cast<std::size_t>(__builtin_ctzll(summary));
      for (std::uint64_t bits = take_group(group); bits != 0; bits &= bits - 1) {
        out.push_back(group * kGroupPages + static_cast<std::size_t>(__builtin_ctzll(bits)));
      }
    }
  }
}

// Reads a group's dirty bits and closes its pages for writing again, except pinned chunks, which
// stay open and dirty.
std::uint64_t SigsegvMemory::take_group(std::size_t group) {
  const std::lock_guard lock(lock_of(group));
  const std::uint64_t old = dirty_word(group).load(std::memory_order_relaxed);
  std::uint64_t bits = old;
  // A pinned chunk stays dirty even where the region has become shorter.
  const PageNumber limit = size_bytes() / kPageBytes, first_page = group * kGroupPages;
  const std::size_t inside = limit > first_page ? limit - first_page : 0;
  bits &= bits_below(inside);
  std::uint64_t keep = 0;
  int error = 0;
  for (std::size_t i = 0; i < kGroupPages / chunk_pages(); ++i) {
    const std::uint64_t chunk_bits = chunk_mask() << (i * chunk_pages());
    if ((bits & chunk_bits) == 0) continue;
    const PageNumber first = group * kGroupPages + i * chunk_pages();
    if (pins(chunk_of(first)).load() != 0) {
      keep |= bits & chunk_bits;
      continue;
    }
    error = protect(first, chunk_pages(), PROT_READ);
    if (error != 0) keep |= bits & chunk_bits;  // still open, so still dirty: nothing is lost
  }
  dirty_word(group).store(keep, std::memory_order_relaxed);
  state_.counters.count_closed(group, static_cast<std::size_t>(std::popcount(old & ~keep)));
  if (keep != 0) summary_word(group).fetch_or(1ULL << (group % 64), std::memory_order_release);
  return bits;
}

void SigsegvMemory::put_back(const std::vector<PageNumber>& pages) {
  for_ranges(pages, SIZE_MAX, [&](PageNumber first, std::size_t count) {
    if (drop_pages(address_of(first), count * kPageBytes) != 0)
      state_.lose("the kernel does not drop them");
  });
}

void SigsegvMemory::pin(PageNumber first, std::size_t count) {
  for (std::size_t chunk = chunk_of(first); chunk <= chunk_of(first + count - 1); ++chunk) {
    const PageNumber page = chunk * chunk_pages();
    pins(chunk).fetch_add(1);
    int error = 0;
    if (options_.writable) {
      const std::lock_guard lock(lock_of(page / kGroupPages));
      error = open_for_writing(page, chunk_pages());
    } else {
      error = protect(page, chunk_pages(), PROT_READ);
    }
    if (error == ENOMEM) error = open_wider(page);
    if (error != 0) {
      unpin(first, page + chunk_pages() - first);  // also this chunk
      fail(Errc::out_of_memory, "cannot pin memory: {}", std::strerror(error));
    }
  }
}

void SigsegvMemory::unpin(PageNumber first, std::size_t count) noexcept {
  for (std::size_t chunk = chunk_of(first); chunk <= chunk_of(first + count - 1); ++chunk) {
    [[maybe_unused]] const std::uint16_t before = pins(chunk).fetch_sub(1);
    assert(before != 0);
  }
}

int SigsegvMemory::protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept {
  if (new_size >= old_size) {
    // A chunk that the old end cut is present, so its new pages need a fault of their own;
    // resolve_present() opens them.
    return 0;
  }
  return mprotect(data() + new_size, old_size - new_size, PROT_NONE) == 0 ? 0 : errno;
}

// The kernel writes the pages (proc(5), /proc/pid/mem; a private mapping's page is copied). They
// are not accessible yet and must not be before their whole chunk is filled.
int SigsegvMemory::place_private(PageNumber first, std::size_t count,
                                 const std::byte* content) noexcept {
  std::span<const std::byte> left(content, count * kPageBytes);
  auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(address_of(first)));
  while (!left.empty()) {
    const ssize_t n = pwrite(mem_, left.data(), left.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    left = left.subspan(static_cast<std::size_t>(n));
    at += n;
  }
  return 0;
}

// After placing, not before: a scan opens noted pages for reading.
void SigsegvMemory::note_placed(PageNumber first, std::uint64_t pages) noexcept {
  const std::lock_guard lock(lock_of(first / kGroupPages));
  for (; pages != 0; pages &= pages - 1) {
    note_dirty(first + static_cast<std::size_t>(__builtin_ctzll(pages)), 1);
  }
}

int SigsegvMemory::find_own(PageNumber first, std::size_t count, std::uint64_t& mask) noexcept {
  mask = 0;
  if (!options_.writable) return 0;
  return find_private_slowly(pagemap_, address_of(first), count, mask);
}

std::int64_t SigsegvMemory::count_own(PageNumber first, std::size_t count) noexcept {
  std::int64_t pages = 0;
  for (std::size_t i = 0; i < count; i += kGroupPages) {
    std::uint64_t mask = 0;
    if (find_own(first + i, std::min(kGroupPages, count - i), mask) != 0) return -1;
    pages += __builtin_popcountll(mask);
  }
  return pages;
}

bool SigsegvMemory::is_unwritten(PageNumber first, std::size_t count) noexcept {
  std::uint64_t own = 0;
  const std::uint64_t bits = bits_below(count) << (first % kGroupPages);
  return (dirty_word(first / kGroupPages).load(std::memory_order_relaxed) & bits) == 0 &&
         find_own(first, count, own) == 0 && own != 0;
}

// Pages that were not written since the last scan are closed for writing already.
std::size_t SigsegvMemory::drop_equal(PageNumber first, std::size_t count) noexcept {
  std::size_t dropped = 0;
  for (std::size_t at = 0; at < count; at += chunk_pages()) {
    dropped += drop_equal_of_chunk(first + at, std::min(chunk_pages(), count - at));
  }
  return dropped;
}

// A thread that opens a page holds the lock, and has noted the page as dirty when it releases it.
// Later threads find the chunk claimed, and wait.
std::size_t SigsegvMemory::drop_equal_of_chunk(PageNumber first, std::size_t count) noexcept {
  std::uint64_t own = 0, dirty = 0;
  {
    const std::lock_guard lock(lock_of(first / kGroupPages));
    dirty = dirty_word(first / kGroupPages).load(std::memory_order_relaxed);
  }
  if (find_own(first, count, own) != 0) return 0;
  std::size_t dropped = 0;
  for (own &= ~(dirty >> (first % kGroupPages)); own != 0; own &= own - 1) {
    const auto i = static_cast<std::size_t>(__builtin_ctzll(own));
    // Without a base copy, dropping a page of zeros gains nothing: a read would take memory again.
    if (!state_.backing.has_base_copy(first + i) || !state_.equals_base_copy(first + i)) continue;
    dropped += drop_pages(address_of(first + i), kPageBytes) == 0;
  }
  return dropped;
}

// The pages stay where they are, closed for writing, and are compared in place.
int SigsegvMemory::freeze(FrozenChunk& f) noexcept {
  assert(f.count != 0 && f.old != nullptr);
  if (!options_.writable) return 0;
  {
    const std::lock_guard lock(lock_of(f.first / kGroupPages));
    const int error = protect(f.first, f.count, PROT_READ);
    if (error != 0) return error;
  }
  int error = find_own(f.first, f.count, f.own);
  if (error == 0 && f.own != 0) error = state_.backing.read(f.first, {f.old, f.count * kPageBytes});
  f.pages = address_of(f.first);
  return error;
}

// A page noted as written opens for writing again at its next write.
int SigsegvMemory::thaw(const FrozenChunk& f, std::uint64_t keep) noexcept {
  for (std::size_t i = 0; i < f.count; ++i) {
    if ((f.own >> i & 1) == 0 || (keep >> i & 1) != 0) continue;
    drop_pages(address_of(f.first + i), kPageBytes);
  }
  return 0;
}

int SigsegvMemory::forget(const FrozenChunk& f) noexcept {
  const std::lock_guard lock(lock_of(f.first / kGroupPages));
  const int error = protect(f.first, f.count, PROT_NONE);
  if (error != 0) return error;
  drop_pages(address_of(f.first), f.count * kPageBytes);
  state_.backing.drop_base_copies(f.first, f.count);
  const std::uint64_t bits = bits_below(f.count) << (f.first % kGroupPages);
  const std::size_t group = f.first / kGroupPages;
  const std::uint64_t old = dirty_word(group).fetch_and(~bits, std::memory_order_relaxed);
  state_.counters.count_closed(group, static_cast<std::size_t>(std::popcount(old & bits)));
  return 0;
}

}  // namespace vellum::region
