// Engine uffd: missing pages raise SIGBUS in the accessing thread, or it waits for the fault thread
// (MemoryOptions::fault_thread). Asynchronous write protection tracks writes, and PAGEMAP_SCAN
// finds them: a write causes no signal, no handler call and no change of mappings. Older kernels
// have synchronous write protection: the first write to a page is a fault, and the handler notes it
// (write_log.hpp).
#include "memory/engine/uffd_memory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <vellum/error.hpp>

#include "base/error_number.hpp"
#include "base/fail.hpp"
#include "base/threads/signals_blocked.hpp"
#include "memory/kernel/kernel.hpp"
#include "memory/kernel/support.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {
namespace {

Tracking tracking_of(Tracking best) noexcept { return std::min(kernel_support().tracking, best); }

}  // namespace

UffdMemory::UffdMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
                       Tracking best)
    : PagedMemory(options, std::move(source),
                  {.fault_signal = SIGBUS,
                   .zeros_take_memory = false,
                   .writes_unmapped = true,
                   .arms_holes = options.writable && tracking_of(best) != Tracking::asynchronous,
                   .unshared_are_base_copies = false}) {
  const bool shared = options.shared != nullptr;
  const Tracking tracking = tracking_of(best);
  uffd_ = options.fault_thread ? open_fault_userfaultfd(tracking, serves_kernel_, shared)
                               : open_userfaultfd(tracking, shared);
  pagemap_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  int error = uffd_ < 0 || pagemap_ < 0 ? errno : 0;
  if (error == 0) {
    error = shared ? register_shared_range(uffd_, data(), options.capacity_bytes)
                   : register_range(uffd_, data(), options.capacity_bytes, options.writable);
  }
  if (error != 0) {
    close_descriptors();
    fail(base::is_shortage(error) ? Errc::out_of_memory : Errc::unsupported,
         "engine uffd is not available: {}", std::strerror(error));
  }
  if (!options.writable) return;
  if (tracking == Tracking::asynchronous) {
    ranges_.resize(kScanRanges);
  } else {
    start_log();
  }
}

// The kernel merges equal pages of a process that wants it (KSM). An armed page would lose its
// protection, and the next write to it would be no fault.
void UffdMemory::start_log() {
  madvise(data(), options_.capacity_bytes, MADV_UNMERGEABLE);  // EINVAL: the kernel has no KSM
  try {
    log_.emplace(uffd_, data(), options_.capacity_bytes, chunk_pages(), state_.counters);
  } catch (...) {
    close_descriptors();
    throw;
  }
}

UffdMemory::~UffdMemory() {
  stop_service();
  fault_thread_.reset();
  close_descriptors();
}

void UffdMemory::close_descriptors() noexcept {
  if (uffd_ >= 0) close(uffd_);
  if (pagemap_ >= 0) close(pagemap_);
}

void UffdMemory::begin_service() {
  if (options_.fault_thread) {
    fault_thread_ = std::make_unique<FaultThread>(uffd_, *this);
  } else {
    add_route(range_.data(), range_.end(), this);
  }
  const int error = protect_beyond(0, size_bytes());
  if (error != 0) fail(Errc::out_of_memory, "cannot map the region: {}", std::strerror(error));
}

int UffdMemory::protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept {
  const int access = options_.writable ? PROT_READ | PROT_WRITE : PROT_READ;
  const auto [from, to] = std::minmax(old_size, new_size);
  if (from == to) return 0;
  return mprotect(data() + from, to - from, new_size > old_size ? access : PROT_NONE) == 0 ? 0
                                                                                           : errno;
}

void UffdMemory::pin(PageNumber first, std::size_t count) {
  if (!log_) return;
  const base::SignalsBlocked no_handlers;  // a handler's store would wait for this thread's lock
  const int error = log_->pin(first, count);
  if (error != 0) fail(Errc::out_of_memory, "cannot pin memory: {}", std::strerror(error));
}

void UffdMemory::unpin(PageNumber first, std::size_t count) noexcept {
  if (log_) log_->unpin(first, count);
}

// Places or leaves pages that are not armed, by place(first, count).
template <typename Place>
int UffdMemory::place(PageNumber first, std::size_t count, Place place) noexcept {
  return log_ ? log_->place(first, count, place) : place(first, count);
}

int UffdMemory::map_zero(PageNumber first, std::size_t count) noexcept {
  return place(first, count, [this](PageNumber page, std::size_t n) {
    return map_zero_pages(uffd_, address_of(page), n * kPageBytes);
  });
}

int UffdMemory::place_zeros(PageNumber first, std::size_t count) noexcept {
  return place(first, count, [this](PageNumber page, std::size_t n) {
    return copy_zero_pages(uffd_, address_of(page), n * kPageBytes);
  });
}

int UffdMemory::map_present(PageNumber first, std::size_t count) noexcept {
  if (log_ && !kernel_maps_armed_) return map_by_reading(address_of(first), count * kPageBytes);
  return map_file_pages(uffd_, address_of(first), count * kPageBytes, options_.writable);
}

// Arms the holes; they stay armed when the kernel maps the memfd's pages there. Otherwise the next
// commit would compare all of them with their base copies, and so access them.
int UffdMemory::prepare_unmapped(PageNumber first, std::size_t count) noexcept {
  return options_.writable ? arm(uffd_, address_of(first), count * kPageBytes) : 0;
}

bool UffdMemory::kernel_has_mapped(PageNumber first, std::size_t count) noexcept {
  return any_mapped(pagemap_, address_of(first), count);
}

int UffdMemory::resolve_present(PageNumber page, bool is_write) noexcept {
  // Another thread has just filled the page, or it is the second one of its chunk, or its table
  // entry has only the marker that a scan left on a hole. The kernel refuses its zero page over a
  // marker, but accepts a copied one.
  const std::size_t index = chunk_of(page);
  if (log_ && is_write && !state_.is_untouched(page)) {
    int error = 0;
    if (log_->open(page, error) || error != 0) return error;
  }
  if (options_.shared && !sharing_.is_of_zeros(index)) return sharing_.show_again(index);
  if (!state_.chunks.claim(index, Chunk::kPresent)) return 0;
  // The chunk may have been evicted and partially filled again meanwhile: the access faults again.
  const int error = state_.absent.test(page) ? 0 : map_there(page, is_write);
  state_.chunks.settle(index, 1, Chunk::kPresent);
  return error;
}

int UffdMemory::map_there(PageNumber page, bool is_write) noexcept {
  if (state_.backing.has_base_copy(page)) return map_present(page, 1);
  const std::size_t index = chunk_of(page);
  return state_.chunks[index].sole_mapped_page.load() != 0 ? filler_.complete(index, is_write)
                                                           : place_zeros(page, 1);
}

void UffdMemory::find_dirty(std::vector<PageNumber>& out) {
  if (log_) {
    written_.clear();
    {
      const base::SignalsBlocked no_handlers;  // as in pin()
      log_->take(size_bytes() / kPageBytes, written_);
    }
    for (const auto& [first, count] : written_) append_written(first, first + count, out);
    return;
  }
  const std::size_t tables = (size_bytes() + kTableBytes - 1) / kTableBytes;
  for (std::size_t table = state_.chunks.next_touched(0, tables); table < tables;) {
    const std::size_t end = state_.chunks.next_untouched(table, tables);
    scan_tables(table, end, out);
    table = state_.chunks.next_touched(end, tables);
  }
}

void UffdMemory::scan_tables(std::size_t first_table, std::size_t end_table,
                             std::vector<PageNumber>& out) {
  std::byte* at = data() + first_table * kTableBytes;
  std::byte* const end = data() + std::min<std::uint64_t>(end_table * kTableBytes, size_bytes());
  while (at < end) {
    std::byte* resume = end;
    const long found = scan_written(pagemap_, at, end, ranges_, resume);
    if (found < 0) fail(Errc::io, "PAGEMAP_SCAN failed: {}", std::strerror(errno));
    for (long i = 0; i < found; ++i) {
      const ScanRange& range = ranges_[static_cast<std::size_t>(i)];
      const auto base = reinterpret_cast<std::uintptr_t>(data());
      append_written((range.begin - base) / kPageBytes, (range.end - base) / kPageBytes, out);
    }
    at = resume;
  }
}

void UffdMemory::append_written(PageNumber first, PageNumber end,
                                std::vector<PageNumber>& out) const {
  for (PageNumber page = first; page < end;) {
    const PageNumber chunk_end = std::min<PageNumber>((chunk_of(page) + 1) * chunk_pages(), end);
    // The scan reports holes, too. A chunk that is still missing had no page mapped during the
    // scan.
    if (!state_.chunks.is_missing(chunk_of(page))) {
      // A chunk that is being filled may already be dirty; whether its pages have base copies is
      // decided only when it is settled.
      state_.chunks.wait_while_claimed(chunk_of(page));
      for (; page < chunk_end; ++page) {
        if (!state_.is_untouched(page) && !state_.absent.test(page)) out.push_back(page);
      }
    }
    page = chunk_end;
  }
}

void UffdMemory::put_back(const std::vector<PageNumber>& pages) {
  for (std::size_t i = 0; i < pages.size();) {
    std::size_t n = 1;
    const bool base_copies = state_.backing.has_base_copy(pages[i]);
    const bool untouched = state_.is_untouched(pages[i]);
    while (i + n < pages.size() && pages[i + n] == pages[i] + n &&
           state_.backing.has_base_copy(pages[i + n]) == base_copies &&
           state_.is_untouched(pages[i + n]) == untouched)
      ++n;
    if (drop_pages(address_of(pages[i]), n * kPageBytes) != 0)
      state_.lose("the kernel does not drop them");
    // Maps the pages again at once: a system call could not fill them.
    if (base_copies) {
      map_present(pages[i], n);
    } else if (!untouched) {
      map_zero(pages[i], n);
    }
    if (log_ && log_->open_pinned(pages[i], n) != 0) state_.lose("the kernel does not open them");
    i += n;
  }
}

int UffdMemory::place_private(PageNumber first, std::size_t count,
                              const std::byte* content) noexcept {
  return place(first, count, [this, first, content](PageNumber page, std::size_t n) {
    return copy_pages(uffd_, address_of(page), n * kPageBytes,
                      content + (page - first) * kPageBytes);
  });
}

int UffdMemory::find_own(PageNumber first, std::size_t count, std::uint64_t& mask) noexcept {
  mask = 0;
  if (!options_.writable) return 0;
  return find_private(pagemap_, address_of(first), count, false, mask);
}

std::int64_t UffdMemory::count_own(PageNumber first, std::size_t count) noexcept {
  std::byte* const begin = address_of(first);
  return count_private(pagemap_, begin, begin + count * kPageBytes);
}

int UffdMemory::unmap_shared(PageNumber first, std::size_t count) noexcept {
  return drop_pages(address_of(first), count * kPageBytes);
}

int UffdMemory::place_unshared(PageNumber first, std::size_t count,
                               const std::byte* content) noexcept {
  return place_private(first, count, content);
}

int UffdMemory::remove_unshared(PageNumber first, std::size_t count) noexcept {
  return unmap_shared(first, count);
}

// Punching the memfd unmaps clean pages everywhere; threads that access one then wait. Private
// pages and zero pages remain. They are moved in one step, which leaves holes, and no thread writes
// them in the new place. The base copies are kept for the comparison, and to restore the chunk.
//
// The chunk is disarmed before: an armed page leaves a marker where it was unmapped, and a marker
// looks like a page that is swapped out. Linux before 6.12.11 moves markers, too (CVE-2025-21696),
// and reading one in the new place adds a page of zeros to the memfd. No scan arms the chunk again
// meanwhile, as it suspends evictions.
int UffdMemory::freeze(FrozenChunk& f) noexcept {
  assert(f.count != 0 && f.old != nullptr && f.place != nullptr);
  if (!options_.writable) return 0;
  std::byte* const at = address_of(f.first);
  if (f.base_copies != 0) {
    const int error = for_each_bit_range(f.base_copies, [&](std::size_t from, std::size_t n) {
      return state_.backing.read(f.first + from, {f.old + from * kPageBytes, n * kPageBytes});
    });
    if (error != 0) return error;
    state_.backing.punch(f.first, f.count);
  }
  const std::uint64_t all = bits_below(f.count);
  std::uint64_t own = 0;
  int error = place(f.first, f.count, [this](PageNumber page, std::size_t n) {
    return disarm(uffd_, address_of(page), n * kPageBytes);
  });
  if (error == 0) error = find_private(pagemap_, at, f.count, true, own);
  // Where all pages have base copies, only private pages can be left.
  if (error == 0 && (own & ~f.absent) == 0 && (f.base_copies | f.absent) == all) return 0;
  if (error == 0) error = move_private(at, f.count * kPageBytes, f.place);
  if (error != 0) {
    if (filler_.show(f.first, all & ~f.absent, f.old, f.base_copies, nullptr, 0) != 0)
      state_.lose("no memory to restore pages");
    return error;
  }
  f.pages = f.place;
  // Scans again: a page of zeros may have been written in between.
  error = find_private(pagemap_, f.place, f.count, true, f.own);
  f.own &= ~f.absent;  // absent pages may look like swapped pages
  if (error != 0) state_.lose("the kernel does not report which pages were written");
  return 0;
}

int UffdMemory::thaw(const FrozenChunk& f, std::uint64_t keep) noexcept {
  if (!options_.writable) return 0;
  const std::uint64_t there = bits_below(f.count) & ~f.absent;
  return filler_.show(f.first, there, f.old, f.base_copies, f.pages, keep);
}

int UffdMemory::forget(const FrozenChunk& f) noexcept {
  if (log_) log_->forget(f.first, f.count);
  state_.backing.forget_base_copies(f.first, f.count);
  if (!options_.writable) state_.backing.punch(f.first, f.count);
  return 0;
}

}  // namespace vellum::region
