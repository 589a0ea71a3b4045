#include "region/memory/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/round_up.hpp"
#include "base/thread_sanitizer.hpp"
#include "cards/table.hpp"
#include "region/memory/memory_no_read_ahead.hpp"
#include "region/memory/memory_scratch.hpp"

namespace vellum::region {
namespace {

// Code compiled by vellum-clang looks at the cards of whatever lies in the window, so there must be
// cards. Where they cannot be reserved, such code does not run.
void reserve_cards_of(std::uint64_t address) {
  if (!cards::in_window(address)) return;
  try {
    cards::reserve_table();
  } catch (const Error&) {
  }
}

}  // namespace

// The area lies past the window of the cards, which is for tracked regions, and past their table.
std::uint64_t far_address(std::uint64_t branch_id) noexcept {
  constexpr std::uint64_t kArea = 0x380000000000;  // 56 TiB up
  constexpr std::uint64_t kPlaceBytes = 64ULL << 30;
  constexpr std::uint64_t kPlaces = 384;  // 24 TiB: AddressSanitizer's heap begins at 80 TiB
  const std::uint64_t hash = branch_id * 0x9E3779B97F4A7C15ULL >> 54;
  if (!base::in_thread_sanitizer()) return kArea + hash % kPlaces * kPlaceBytes;
  // 448 GiB: above, the kernel chooses addresses.
  return base::kThreadSanitizerMappings + hash % 7 * kPlaceBytes;
}

RegionMemory::RegionMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source)
    : options_(options),
      chunk_shift_(static_cast<unsigned>(std::countr_zero(options.chunk_bytes / kPageBytes))),
      pager_(options.memory_limit_bytes != 0 ? std::make_shared<Pager>(options.memory_limit_bytes)
                                             : Pager::of_process()),
      size_bytes_(options.size_bytes),
      backing_(options.capacity_bytes, *pager_, options.image ? options.image->descriptor() : -1),
      kernel_pages_(options.image != nullptr),
      source_(std::move(source)),
      chunks_((options.capacity_bytes / options.chunk_bytes + 1) * sizeof(Chunk)),
      touched_((options.capacity_bytes / kTableBytes / 64 + 1) * sizeof(std::uint64_t)),
      scratches_(kernel_pages_ ? nullptr : std::make_unique<Scratch[]>(kScratches)) {
  assert(options.capacity_bytes % kPageBytes == 0 && options.size_bytes % kPageBytes == 0);
  assert(std::has_single_bit(options.chunk_bytes) && options.chunk_bytes >= kPageBytes &&
         options.chunk_bytes <= kMostChunkPages * kPageBytes);
  for (std::size_t i = 0; i < kScratches && !kernel_pages_; ++i) {
    Scratch& s = scratches_[i];
    s.memory = base::Reservation(3 * chunk_bytes() + SpillFile::Batch::bytes(chunk_pages()) +
                                 SpillFile::Batch::kRecordBytes);
    s.old = s.memory.data();
    s.own = s.old + chunk_bytes();
    s.place = s.own + chunk_bytes();
    s.batch = s.place + chunk_bytes();
    s.record = s.batch + SpillFile::Batch::bytes(chunk_pages());
  }
  map_range();
}

RegionMemory::~RegionMemory() {
  pager_->add_pages(-private_pages_.load());
  if (base_ == nullptr || left_mapped_) return;
  if (options_.over_reservation) {
    // Leaves no hole for another thread's mapping: the caller is going to unmap the range.
    mmap(base_, options_.capacity_bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  } else {
    munmap(base_, options_.capacity_bytes);
  }
}

void RegionMemory::map_range() {
  const std::size_t bytes = options_.capacity_bytes;
  void* const wanted =
      reinterpret_cast<void*>(options_.wanted_address);  // NOLINT(performance-no-int-to-ptr)
  const int flags = MAP_PRIVATE | MAP_NORESERVE;
  void* map = MAP_FAILED;
  if (options_.over_reservation) {
    map = mmap(wanted, bytes, PROT_NONE, flags | MAP_FIXED, backing_.memfd(), 0);
  } else if (wanted != nullptr) {
    if (base::may_map_at(options_.wanted_address)) {
      map = mmap(wanted, bytes, PROT_NONE, flags | MAP_FIXED_NOREPLACE, backing_.memfd(), 0);
    }
    if (map != MAP_FAILED && map != wanted) {  // a kernel or sanitizer that took it for a hint
      munmap(map, bytes);
      map = MAP_FAILED;
    }
    if (map == MAP_FAILED && options_.address_required) {
      char text[160];
      std::snprintf(text, sizeof text, "address 0x%llx is taken: cannot map %llu bytes there",
                    static_cast<unsigned long long>(options_.wanted_address),
                    static_cast<unsigned long long>(bytes));
      fail(Errc::busy, "{}", text);
    }
  }
  if (map == MAP_FAILED && !options_.over_reservation) {
    // Room for alignment: a region starts at a multiple of 2 MiB.
    void* room = mmap(nullptr, bytes + kTableBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room != MAP_FAILED) {
      const auto start = reinterpret_cast<std::uintptr_t>(room);
      const auto aligned = base::round_up(start, kTableBytes);
      if (aligned > start) munmap(room, aligned - start);
      auto* const at = static_cast<std::byte*>(room) + (aligned - start);
      const std::size_t tail = start + kTableBytes - aligned;
      if (tail > 0) munmap(at + bytes, tail);
      map = mmap(at, bytes, PROT_NONE, flags | MAP_FIXED, backing_.memfd(), 0);
    }
  }
  if (map == MAP_FAILED) {
    fail(Errc::out_of_memory, "cannot reserve {} bytes of address space for a region: {}", bytes,
         std::strerror(errno));
  }
  base_ = static_cast<std::byte*>(map);
  reserve_cards_of(reinterpret_cast<std::uintptr_t>(map));
  // A child would have holes without the engine's service, so it gets no mapping.
  madvise(base_, bytes, MADV_DONTFORK);
}

void RegionMemory::start_paging() {
  if (kernel_pages_) return;
  if (options_.writable && !options_.spill_directory.empty()) {
    spill_ =
        std::make_unique<SpillFile>(options_.spill_directory, options_.capacity_bytes / kPageBytes);
  }
  if (options_.keeps_working_set) make_working_set();
  pager_->join(*this, size_bytes());
  joined_ = true;
  const auto& source = source_.shared();
  const std::size_t pages = size_bytes() / kPageBytes;
  // No thread starts where there is nothing to read.
  const bool ahead = most_ahead() != 0 || (working_set_ && working_set_->any_wanted());
  if (ahead && source != nullptr && source->zeros_from(0, pages) < pages) {
    const std::lock_guard lock(wanted_mutex_);
    join_read_ahead();
  }
}

void RegionMemory::stop_service() noexcept {
  remove_route(this);
  if (ReadAhead* const ahead = read_ahead_.exchange(nullptr)) ahead->leave(*this);
  if (joined_) pager_->leave(*this, size_bytes());
  joined_ = false;
}

void RegionMemory::settle(std::size_t index, std::size_t count, std::uint32_t state) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    chunk(index + i).state.store(state);
    chunk(index + i).state.notify_all();
  }
}

void RegionMemory::touch(PageNumber first, std::size_t count) noexcept {
  for (std::size_t table = first / kTablePages; table <= (first + count - 1) / kTablePages;
       ++table) {
    touched_word(table).fetch_or(1ULL << (table % 64), std::memory_order_release);
  }
}

bool RegionMemory::make_present(PageNumber first, std::size_t count,
                                store::ReadFailure& failure) noexcept {
  if (count == 0) return true;
  for (std::size_t index = chunk_of(first); index <= chunk_of(first + count - 1); ++index) {
    if (!fill(index, failure) || !show_prefetched(index, failure)) return false;
  }
  return true;
}

void RegionMemory::hold(PageNumber first, std::size_t count) noexcept {
  for (std::size_t i = chunk_of(first); i <= chunk_of(first + count - 1); ++i) {
    // Pairs with evict(), which claims the chunk before it looks at the holds.
    chunk(i).holds.fetch_add(1);
    wait_while_claimed(i);
  }
}

void RegionMemory::release(PageNumber first, std::size_t count) noexcept {
  for (std::size_t i = chunk_of(first); i <= chunk_of(first + count - 1); ++i) {
    chunk(i).holds.fetch_sub(1);
  }
}

FaultResult RegionMemory::on_fault(const Fault& fault) noexcept {
  if (fault.address < base_ || fault.address >= base_ + size_bytes()) return FaultResult::not_ours;
  if (fault.signal_number != fault_signal()) return FaultResult::not_ours;
  if (fault.is_write && !options_.writable) return FaultResult::not_ours;
  const auto page = static_cast<PageNumber>(fault.address - base_) / kPageBytes;
  const std::size_t index = chunk_of(page);
  const bool was_present = chunk(index).state.load() == kPresent;
  if (!was_present) read_ahead_of(index);
  if (!was_present && working_set_) prefetch_beside(index);
  store::ReadFailure failure;
  bool ok = fill(index, failure);  // waits when another thread is filling it
  // A write to a chunk that was missing may fault once more, and come here again.
  if (ok && was_present) {
    chunk(index).prefetched.store(0);
    const int error = resolve_present(page, fault.is_write);
    ok = error == 0;
    if (!ok) failure = {"cannot map memory", {}, page, error};
  }
  if (ok) return FaultResult::retry;
  report(failure);
  return FaultResult::lost;
}

// Prints one line on standard error.
void RegionMemory::report(const store::ReadFailure& failure) const noexcept {
  char text[1024] = "vellum: ";
  const std::size_t used = std::strlen(text);
  const LiveSource::Use source(source_);
  if (source.get() != nullptr) {
    source->describe(failure, std::span(text).subspan(used, sizeof text - used - 1));
  } else {
    std::strncat(text, failure.reason, sizeof text - used - 2);
  }
  std::strncat(text, "\n", sizeof text - std::strlen(text) - 1);
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text, std::strlen(text));
}

void RegionMemory::resize(std::uint64_t size_bytes) {
  assert(size_bytes % kPageBytes == 0 && size_bytes <= options_.capacity_bytes);
  const std::uint64_t old = size_bytes_.load();
  if (size_bytes > old) {
    const int error = protect_beyond(old, size_bytes);
    if (error != 0) fail(Errc::out_of_memory, "cannot grow the region: {}", std::strerror(error));
    size_bytes_.store(size_bytes, std::memory_order_release);
    if (joined_) pager_->grown(size_bytes - old);
    const int cut_error = open_cut_chunk(old, size_bytes);
    if (cut_error != 0) {
      resize(old);
      fail(Errc::out_of_memory, "cannot grow the region: {}", std::strerror(cut_error));
    }
  } else if (size_bytes < old) {
    const NoReadAhead guard(*this);
    // Later, nothing past the end can be evicted.
    for (std::size_t i = chunks_of(size_bytes); i < chunks_of(old); ++i) {
      if (!kernel_pages_ && !chunk_missing(i)) evict(i, Changed::stay);
    }
    size_bytes_.store(size_bytes, std::memory_order_release);
    if (joined_) pager_->shrunk(old - size_bytes);
    const int error = protect_beyond(old, size_bytes);
    if (error != 0) fail(Errc::out_of_memory, "cannot shrink the region: {}", std::strerror(error));
  }
}

// A chunk that the old end cut may already be present. Nothing else would bring its new pages in
// when a system call touches them first.
int RegionMemory::open_cut_chunk(std::uint64_t old_size, std::uint64_t new_size) noexcept {
  const PageNumber first = old_size / kPageBytes;
  const std::size_t index = chunk_of(first);
  if (first % chunk_pages() == 0) return 0;
  const PageNumber end = std::min((index + 1) * chunk_pages(), new_size / kPageBytes);
  hold(first, 1);
  int error = 0;
  for (PageNumber page = first; page < end && is_present(first) && error == 0; ++page) {
    error = resolve_present(page, false);
  }
  release(first, 1);
  return error;
}

}  // namespace vellum::region
