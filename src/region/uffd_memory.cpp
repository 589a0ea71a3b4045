// Engine uffd: missing pages raise SIGBUS in the thread that touches them; writes are noticed by
// asynchronous write protection and found by PAGEMAP_SCAN. No signal, no handler and no change of
// mappings for a write.
#include "region/uffd_memory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vellum/error.hpp>

#include "region/kernel.hpp"

namespace vellum::region {

UffdMemory::UffdMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source)
    : RegionMemory(options, std::move(source)), ranges_(kScanRanges) {
  uffd_ = open_userfaultfd();
  pagemap_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  int error = uffd_ < 0 || pagemap_ < 0 ? errno : 0;
  if (error == 0) error = register_range(uffd_, base_, options.capacity_bytes, options.writable);
  if (error != 0) {
    close_descriptors();
    throw Error(Errc::unsupported,
                std::string("engine uffd is not available: ") + std::strerror(error));
  }
}

UffdMemory::~UffdMemory() {
  stop_routing();
  close_descriptors();
}

void UffdMemory::close_descriptors() noexcept {
  if (uffd_ >= 0) close(uffd_);
  if (pagemap_ >= 0) close(pagemap_);
}

void UffdMemory::start() {
  add_route(base_, base_ + options_.capacity_bytes, this);
  const int error = protect_beyond(0, size_bytes());
  if (error != 0)
    throw Error(Errc::out_of_memory, std::string("cannot map the region: ") + std::strerror(error));
}

int UffdMemory::protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept {
  const int access = options_.writable ? PROT_READ | PROT_WRITE : PROT_READ;
  const auto [from, to] = std::minmax(old_size, new_size);
  if (from == to) return 0;
  return mprotect(base_ + from, to - from, new_size > old_size ? access : PROT_NONE) == 0 ? 0
                                                                                          : errno;
}

int UffdMemory::fault_signal() const noexcept { return SIGBUS; }

int UffdMemory::map_zero(PageNumber first, std::size_t count) noexcept {
  return map_zero_pages(uffd_, base_ + first * kPageBytes, count * kPageBytes);
}

int UffdMemory::map_present(PageNumber first, std::size_t count) noexcept {
  return map_file_pages(uffd_, base_ + first * kPageBytes, count * kPageBytes, options_.writable);
}

int UffdMemory::resolve_present(PageNumber page, bool) noexcept {
  // The page came in a moment ago through another thread, or its table entry holds only the mark
  // that a scan left on a hole. The kernel refuses its zero page over such a mark, but takes a
  // copied one.
  if (backing_.has_twin(page)) return map_present(page, 1);
  return copy_zero_page(uffd_, base_ + page * kPageBytes);
}

void UffdMemory::collect_dirty(std::vector<PageNumber>& out) {
  const std::size_t slots = (size_bytes() + kSlotBytes - 1) / kSlotBytes;
  for (std::size_t slot = 0; slot < slots;) {
    const std::uint64_t word = touched_word(slot).load(std::memory_order_acquire) >> (slot % 64);
    if (word == 0) {
      slot = (slot / 64 + 1) * 64;
      continue;
    }
    slot += static_cast<std::size_t>(__builtin_ctzll(word));
    std::size_t end = slot;
    while (end < slots &&
           (touched_word(end).load(std::memory_order_acquire) >> (end % 64) & 1) != 0)
      ++end;
    scan_slots(slot, end, out);
    slot = end;
  }
}

void UffdMemory::scan_slots(std::size_t first_slot, std::size_t end_slot,
                            std::vector<PageNumber>& out) {
  std::byte* at = base_ + first_slot * kSlotBytes;
  std::byte* const end = base_ + std::min<std::uint64_t>(end_slot * kSlotBytes, size_bytes());
  while (at < end) {
    std::byte* resume = end;
    const long found = scan_written(pagemap_, at, end, ranges_, resume);
    if (found < 0)
      throw Error(Errc::io, std::string("PAGEMAP_SCAN failed: ") + std::strerror(errno));
    for (long i = 0; i < found; ++i) {
      const ScanRange& range = ranges_[static_cast<std::size_t>(i)];
      const auto base = reinterpret_cast<std::uintptr_t>(base_);
      append_written((range.begin - base) / kPageBytes, (range.end - base) / kPageBytes, out);
    }
    at = resume;
  }
}

void UffdMemory::append_written(PageNumber first, PageNumber end,
                                std::vector<PageNumber>& out) const {
  for (PageNumber page = first; page < end;) {
    const PageNumber chunk_end = std::min<PageNumber>((page / kChunkPages + 1) * kChunkPages, end);
    // The scan reports holes, too. A chunk that is missing even now had no page mapped when the
    // scan passed.
    if (!chunk_missing(page / kChunkPages)) {
      // One that is being filled may have been written already; whether it has twins is known
      // only afterwards.
      wait_while_filling(page / kChunkPages);
      for (; page < chunk_end; ++page) out.push_back(page);
    }
    page = chunk_end;
  }
}

void UffdMemory::discard(const std::vector<PageNumber>& pages) {
  for (std::size_t i = 0; i < pages.size();) {
    std::size_t n = 1;
    const bool twins = backing_.has_twin(pages[i]);
    while (i + n < pages.size() && pages[i + n] == pages[i] + n &&
           backing_.has_twin(pages[i + n]) == twins)
      ++n;
    madvise(base_ + pages[i] * kPageBytes, n * kPageBytes, MADV_DONTNEED);
    // Mapped again at once: a system call could not fault it in.
    if (twins) {
      map_present(pages[i], n);
    } else {
      map_zero(pages[i], n);
    }
    i += n;
  }
}

}  // namespace vellum::region
