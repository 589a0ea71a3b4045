#include "memory/paged/paged_memory.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "memory/paged/paged_memory_no_read_ahead.hpp"

namespace vellum::region {

PagedMemory::PagedMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
                         Traits traits)
    : PagedMemory(options, std::move(source), traits,
                  std::make_shared<MemfdBacking>(options.capacity_bytes,
                                                 Pager::of_limit(options.memory_limit_bytes))) {}

PagedMemory::PagedMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
                         Traits traits, const std::shared_ptr<MemfdBacking>& base_copies)
    : RegionMemory(options, std::move(source), base_copies),
      pager_(base_copies->pager()),
      backing_(*base_copies),
      chunks_(options.capacity_bytes, options.chunk_bytes),
      traits_(traits),
      counters_(options.counters != nullptr ? *options.counters : nothing_),
      scratches_(chunk_pages()),
      bare_(options.capacity_bytes),
      absent_(options.capacity_bytes) {
  if (options.shared)
    origins_ = base::Reservation(options.capacity_bytes / options.chunk_bytes + 1);
}

PagedMemory::~PagedMemory() {
  pager_->add_pages(-private_pages_.load() - shared_pages_.load() - unshared_pages_.load());
  pager_->end_keep(huge_.size() * kTableBytes);
}

void PagedMemory::start() {
  // Whoever answers faults may be a thread, which finds all that a fault needs.
  if (options_.writable && !options_.spill_directory.empty()) {
    spill_ =
        std::make_unique<SpillFile>(options_.spill_directory, options_.capacity_bytes / kPageBytes);
  }
  if (options_.keeps_working_set) make_working_set();
  make_wide_load();
  begin_service();
  pager_->join(*this, size_bytes());
  joined_ = true;
  start_read_ahead();
}

void PagedMemory::stop_service() noexcept {
  remove_route(this);
  if (wide_load_) wide_load_->end();
  if (HelperThread* const ahead = read_ahead_.exchange(nullptr)) ahead->leave(help_ahead_);
  if (HelperThread* const thread = std::exchange(reclaimer_, nullptr)) thread->leave(help_reclaim_);
  if (joined_) pager_->leave(*this, size_bytes());
  joined_ = false;
}

bool PagedMemory::make_present(PageNumber first, std::size_t count,
                               store::ReadFailure& failure) noexcept {
  if (count == 0) return true;
  const bool ok = make_all_present(first, count, failure);
  note_memory();
  return ok;
}

bool PagedMemory::make_all_present(PageNumber first, std::size_t count,
                                   store::ReadFailure& failure) noexcept {
  try {
    const format::PageRange all[] = {{first, count}};
    if (is_worth_threads(count)) return make_units_present(units_of(all), failure);
  } catch (const std::exception&) {  // no memory for threads
  }
  return make_chunks_present(first, count, failure);
}

bool PagedMemory::make_chunks_present(PageNumber first, std::size_t count,
                                      store::ReadFailure& failure) noexcept {
  if (options_.shared) load_shared_range(first, count);
  for (std::size_t index = chunk_of(first); index <= chunk_of(first + count - 1); ++index) {
    if (!fill(index, failure) || !fill_rest(index, failure) || !map_all(index, failure))
      return false;
  }
  return true;
}

void PagedMemory::hold(PageNumber first, std::size_t count) noexcept {
  for (std::size_t i = chunk_of(first); i <= chunk_of(first + count - 1); ++i) chunks_.hold(i);
}

void PagedMemory::release(PageNumber first, std::size_t count) noexcept {
  for (std::size_t i = chunk_of(first); i <= chunk_of(first + count - 1); ++i) chunks_.release(i);
}

FaultResult PagedMemory::on_fault(const Fault& fault) noexcept {
  if (!contains(fault.address)) return FaultResult::not_ours;
  if (fault.is_write && !options_.writable) return FaultResult::not_ours;
  const auto page = static_cast<PageNumber>(fault.address - data()) / kPageBytes;
  if (fault.signal_number != traits_.fault_signal) return on_other_fault(page, fault);
  const std::size_t index = chunk_of(page);
  const bool was_present = chunks_[index].state.load() == Chunk::kPresent;
  using enum statistics::FaultKind;
  counters_.count_fault(was_present ? present : fault.is_write ? write : read, index);
  if (!was_present) start_bulk_load(index);
  if (!was_present) read_ahead_of(index, fault.is_write);
  if (!was_present && working_set_) prefetch_beside(index);
  store::ReadFailure failure;
  const auto written = fault.is_write ? std::optional(page) : std::nullopt;
  const bool by_part = was_present ? is_absent(page) : !options_.shared && wants_part(index);
  if (!was_present || by_part) await_room(by_part ? 2 : chunk_pages());
  // Waits when another thread is filling it.
  bool ok = by_part ? fill_part(page, fault.is_write, failure) : fill(index, failure, written);
  if (!was_present) note_memory();
  // A write to a chunk that was missing may fault once more, and come here again.
  if (ok && was_present && !by_part) {
    chunks_[index].prefetched.store(0);
    const int error = resolve_present(page, fault.is_write);
    ok = error == 0;
    if (!ok) failure = {"cannot map memory", {}, page, error};
  }
  if (ok) return FaultResult::retry;
  report(failure);
  return FaultResult::lost;
}

void PagedMemory::resize(std::uint64_t size_bytes) {
  assert(size_bytes % kPageBytes == 0 && size_bytes <= options_.capacity_bytes);
  const std::uint64_t old = size_bytes_.load();
  if (size_bytes > old) {
    grow(old, size_bytes);
  } else if (size_bytes < old) {
    shrink(old, size_bytes);
  }
}

void PagedMemory::grow(std::uint64_t old_size, std::uint64_t new_size) {
  const auto require = [](int error) {
    if (error == 0) return;
    fail(Errc::out_of_memory, "cannot grow the region: {}", std::strerror(error));
  };
  require(protect_beyond(old_size, new_size));
  size_bytes_.store(new_size, std::memory_order_release);
  if (joined_) pager_->grown(new_size - old_size);
  const int error = open_cut_chunk(old_size, new_size);
  if (error != 0) shrink(new_size, old_size);
  require(error);
}

// Later, nothing past the end can be evicted.
void PagedMemory::shrink(std::uint64_t old_size, std::uint64_t new_size) {
  const NoReadAhead guard(*this);
  for (std::size_t i = chunks_of(new_size); i < chunks_of(old_size); ++i) {
    if (!chunks_.is_missing(i)) evict(i, Changed::stay);
  }
  size_bytes_.store(new_size, std::memory_order_release);
  if (joined_) pager_->shrunk(old_size - new_size);
  const int error = protect_beyond(old_size, new_size);
  if (error == 0) return;
  fail(Errc::out_of_memory, "cannot shrink the region: {}", std::strerror(error));
}

// A chunk that the old end cut may already be present. Nothing else would bring its new pages in
// when a system call touches them first.
int PagedMemory::open_cut_chunk(std::uint64_t old_size, std::uint64_t new_size) noexcept {
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
