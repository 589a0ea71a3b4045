// Engine uffd: missing pages raise SIGBUS in the thread that touches them; writes are noticed by
// asynchronous write protection and found by PAGEMAP_SCAN. A write causes no signal, no handler
// call and no change of mappings.
#include "region/memory/uffd_memory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "region/kernel/kernel.hpp"

namespace vellum::region {

UffdMemory::UffdMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source)
    : RegionMemory(options, std::move(source)), ranges_(kScanRanges) {
  uffd_ = open_userfaultfd();
  pagemap_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  int error = uffd_ < 0 || pagemap_ < 0 ? errno : 0;
  if (error == 0) error = register_range(uffd_, base_, options.capacity_bytes, options.writable);
  if (error != 0) {
    close_descriptors();
    fail(Errc::unsupported, "engine uffd is not available: {}", std::strerror(error));
  }
}

UffdMemory::~UffdMemory() {
  stop_service();
  close_descriptors();
}

void UffdMemory::close_descriptors() noexcept {
  if (uffd_ >= 0) close(uffd_);
  if (pagemap_ >= 0) close(pagemap_);
}

void UffdMemory::start() {
  add_route(base_, base_ + options_.capacity_bytes, this);
  const int error = protect_beyond(0, size_bytes());
  if (error != 0) fail(Errc::out_of_memory, "cannot map the region: {}", std::strerror(error));
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

// Arms the holes; the kernel keeps that when it maps the memfd's pages there. Otherwise the next
// commit would compare all of them with their base copies, and so touch them.
int UffdMemory::prepare_unmapped(PageNumber first, std::size_t count) noexcept {
  if (!options_.writable) return 0;
  ScanRange ranges[32];
  std::byte* const end = base_ + (first + count) * kPageBytes;
  for (std::byte* at = base_ + first * kPageBytes; at < end;) {
    std::byte* resume = end;
    if (scan_written(pagemap_, at, end, ranges, resume) < 0) return errno;
    at = resume;
  }
  return 0;
}

bool UffdMemory::kernel_has_mapped(PageNumber first, std::size_t count) noexcept {
  return any_mapped(pagemap_, base_ + first * kPageBytes, count);
}

int UffdMemory::resolve_present(PageNumber page, bool) noexcept {
  // The page came in a moment ago through another thread, or its table entry holds only the marker
  // that a scan left on a hole. The kernel refuses its zero page over such a marker, but takes a
  // copied one.
  const std::size_t index = chunk_of(page);
  if (!claim(index, kPresent)) return 0;
  const int error = backing_.has_base_copy(page) ? map_present(page, 1)
                                                 : copy_zero_page(uffd_, base_ + page * kPageBytes);
  settle(index, 1, kPresent);
  return error;
}

void UffdMemory::find_dirty(std::vector<PageNumber>& out) {
  const std::size_t tables = (size_bytes() + kTableBytes - 1) / kTableBytes;
  for (std::size_t table = 0; table < tables;) {
    const std::uint64_t word = touched_word(table).load(std::memory_order_acquire) >> (table % 64);
    if (word == 0) {
      table = (table / 64 + 1) * 64;
      continue;
    }
    table += static_cast<std::size_t>(__builtin_ctzll(word));
    std::size_t end = table;
    while (end < tables &&
           (touched_word(end).load(std::memory_order_acquire) >> (end % 64) & 1) != 0)
      ++end;
    scan_tables(table, end, out);
    table = end;
  }
}

void UffdMemory::scan_tables(std::size_t first_table, std::size_t end_table,
                             std::vector<PageNumber>& out) {
  std::byte* at = base_ + first_table * kTableBytes;
  std::byte* const end = base_ + std::min<std::uint64_t>(end_table * kTableBytes, size_bytes());
  while (at < end) {
    std::byte* resume = end;
    const long found = scan_written(pagemap_, at, end, ranges_, resume);
    if (found < 0) fail(Errc::io, "PAGEMAP_SCAN failed: {}", std::strerror(errno));
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
    const PageNumber chunk_end = std::min<PageNumber>((chunk_of(page) + 1) * chunk_pages(), end);
    // The scan reports holes, too. A chunk that is missing even now had no page mapped when the
    // scan passed.
    if (!chunk_missing(chunk_of(page))) {
      // A chunk that is being filled may already have been written; whether it has base copies is
      // known only afterwards.
      wait_while_claimed(chunk_of(page));
      for (; page < chunk_end; ++page) out.push_back(page);
    }
    page = chunk_end;
  }
}

void UffdMemory::put_back(const std::vector<PageNumber>& pages) {
  for (std::size_t i = 0; i < pages.size();) {
    std::size_t n = 1;
    const bool base_copies = backing_.has_base_copy(pages[i]);
    while (i + n < pages.size() && pages[i + n] == pages[i] + n &&
           backing_.has_base_copy(pages[i + n]) == base_copies)
      ++n;
    madvise(base_ + pages[i] * kPageBytes, n * kPageBytes, MADV_DONTNEED);
    // Maps the pages again at once: a system call could not fault them in.
    if (base_copies) {
      map_present(pages[i], n);
    } else {
      map_zero(pages[i], n);
    }
    i += n;
  }
}

int UffdMemory::place_private(PageNumber page, const std::byte* content) noexcept {
  return copy_page(uffd_, base_ + page * kPageBytes, content);
}

int UffdMemory::find_own(PageNumber first, std::size_t count, std::uint64_t& mask) noexcept {
  mask = 0;
  if (!options_.writable) return 0;
  return find_private(pagemap_, base_ + first * kPageBytes, count, false, mask);
}

std::int64_t UffdMemory::count_own(PageNumber first, std::size_t count) noexcept {
  std::byte* const begin = base_ + first * kPageBytes;
  return count_private(pagemap_, begin, begin + count * kPageBytes);
}

// Punching the memfd takes clean pages out of every mapping; threads that touch one then wait.
// Private pages and zero pages remain. Moving them away in one step leaves holes, and nobody writes
// them in the new place. The base copies are kept for comparing, and for putting everything back.
int UffdMemory::freeze(Frozen& f) noexcept {
  if (!options_.writable) return 0;
  std::byte* const at = base_ + f.first * kPageBytes;
  if (f.base_copies != 0) {
    const int error = backing_.read(f.first, {f.old, f.count * kPageBytes});
    if (error != 0) return error;
    backing_.punch(f.first, f.count);
  }
  const std::uint64_t all = bits_below(f.count);
  std::uint64_t own = 0;
  int error = find_private(pagemap_, at, f.count, true, own);
  // With base copies everywhere, nothing but private pages can be left.
  if (error == 0 && own == 0 && f.base_copies == all) return 0;
  if (error == 0) error = move_away(at, f.count * kPageBytes, f.place);
  if (error != 0) {
    if (show(f.first, f.count, f.old, f.base_copies, nullptr, 0) != 0)
      lose("no memory to put pages back");
    return error;
  }
  f.pages = f.place;
  // Looks again: a page of zeros may have been written in between.
  error = find_private(pagemap_, f.place, f.count, true, f.own);
  if (error != 0) lose("the kernel does not say which pages were written");
  return 0;
}

int UffdMemory::thaw(const Frozen& f, std::uint64_t keep) noexcept {
  if (!options_.writable) return 0;
  const int error = show(f.first, f.count, f.old, f.base_copies, f.pages, keep);
  if (f.pages != nullptr) madvise(f.place, f.count * kPageBytes, MADV_DONTNEED);
  return error;
}

int UffdMemory::forget(const Frozen& f) noexcept {
  backing_.forget_base_copies(f.first, f.count);
  if (!options_.writable) backing_.punch(f.first, f.count);
  if (f.pages != nullptr) madvise(f.place, f.count * kPageBytes, MADV_DONTNEED);
  return 0;
}

}  // namespace vellum::region
