#include "memory/paged/paged_memory.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::region {
namespace {

// A partial fill of a page takes a base copy and a private copy.
constexpr std::size_t kPartPages = 2;

}  // namespace

PagedMemory::PagedMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
                         EngineTraits traits)
    : PagedMemory(options, std::move(source), traits,
                  std::make_shared<MemfdBacking>(options.capacity_bytes,
                                                 Pager::of_limit(options.memory_limit_bytes))) {}

PagedMemory::PagedMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
                         EngineTraits traits, const std::shared_ptr<MemfdBacking>& base_copies)
    : RegionMemory(options, std::move(source), base_copies),
      state_(options_, traits, source_, size_bytes_, data(), *base_copies),
      fill_policy_(
          state_.chunks, state_.streams, state_.partial_fills, *state_.pager,
          {.is_shared = options.shared != nullptr,
           .may_fill_parts = traits.writes_unmapped && !options.huge_pages && chunk_pages() > 1}) {}

void PagedMemory::start() {
  assert(!joined_);
  // Faults may be served by a thread, which needs all of this.
  if (options_.writable && !options_.spill_directory.empty()) {
    state_.spill =
        std::make_unique<SpillFile>(options_.spill_directory, options_.capacity_bytes / kPageBytes);
  }
  if (options_.keeps_working_set) prefetcher_.start();
  bulk_loader_.prepare();
  begin_service();
  state_.pager->join(account_, size_bytes());
  joined_ = true;
  read_ahead_.start();
}

void PagedMemory::stop_service() noexcept {
  remove_route(this);
  bulk_loader_.end();
  read_ahead_.stop();
  reclaimer_.stop();
  if (joined_) state_.pager->leave(account_, size_bytes());
  joined_ = false;
}

void PagedMemory::hold(PageNumber first, std::size_t count) noexcept {
  assert(count != 0 && (first + count) * kPageBytes <= capacity_bytes());
  for (std::size_t i = chunk_of(first); i <= chunk_of(first + count - 1); ++i)
    state_.chunks.hold(i);
}

void PagedMemory::release(PageNumber first, std::size_t count) noexcept {
  assert(count != 0 && (first + count) * kPageBytes <= capacity_bytes());
  for (std::size_t i = chunk_of(first); i <= chunk_of(first + count - 1); ++i)
    state_.chunks.release(i);
}

FaultResult PagedMemory::on_fault(const Fault& fault) noexcept {
  if (!contains(fault.address)) return FaultResult::not_ours;
  if (fault.is_write && !options_.writable) return FaultResult::not_ours;
  const auto page = static_cast<PageNumber>(fault.address - data()) / kPageBytes;
  if (fault.signal_number != state_.traits.fault_signal) return on_other_fault(page, fault);
  const std::size_t index = chunk_of(page);
  const bool was_present = state_.chunks[index].state.load() == Chunk::kPresent;
  using enum statistics::FaultKind;
  state_.counters.count_fault(was_present ? present : fault.is_write ? write : read, index);
  store::ReadFailure failure;
  const bool ok = was_present ? serve_present(page, fault.is_write, failure)
                              : serve_missing(page, fault.is_write, failure);
  if (ok) return FaultResult::retry;
  report(failure);
  return FaultResult::lost;
}

bool PagedMemory::serve_present(PageNumber page, bool is_write,
                                store::ReadFailure& failure) noexcept {
  if (state_.absent.test(page)) {
    evictor_.await_room(kPartPages);
    return filler_.fill_part(page, is_write, failure);
  }
  const std::size_t index = chunk_of(page);
  // Waits while another thread fills the chunk, or fills it if it was evicted meanwhile.
  if (!filler_.fill(index, failure, is_write ? std::optional(page) : std::nullopt)) return false;
  state_.chunks[index].prefetched.store(0);
  const int error = resolve_present(page, is_write);
  if (error != 0) failure = {"cannot map memory", {}, page, error};
  return error == 0;
}

// A write to a chunk that was missing may fault once more, and is then served as present.
bool PagedMemory::serve_missing(PageNumber page, bool is_write,
                                store::ReadFailure& failure) noexcept {
  const std::size_t index = chunk_of(page);
  const FillPolicy::FillDecision decision = fill_policy_.decide(
      {index, is_write, read_ahead_.is_running(), read_ahead_.max_ahead(), bulk_loader_.load()},
      [&](std::size_t chunk) noexcept { return bulk_loader_.take_unit_of(chunk); });
  if (decision.wakes_thread) read_ahead_.wake();
  if (decision.scope == FillScope::unit) bulk_loader_.load_unit(bulk_loader_.unit_of(index));
  if (decision.scope == FillScope::shared) bulk_loader_.load_shared_unit_of(index);
  read_ahead_.fill_while_claimed(index, decision.ahead, is_write);
  if (state_.working_set) prefetcher_.step_while_claimed(index);
  const bool part = decision.scope == FillScope::part;
  evictor_.await_room(part ? kPartPages : chunk_pages());
  const auto written = is_write ? std::optional(page) : std::nullopt;
  const bool ok =
      part ? filler_.fill_part(page, is_write, failure) : filler_.fill(index, failure, written);
  state_.note_memory();
  return ok;
}

void PagedMemory::advise(PageNumber first, std::size_t count, Advice advice) {
  assert(count != 0);  // a concurrent rollback may make the region smaller
  const std::size_t begin = chunk_of(first), end = chunk_of(first + count - 1) + 1;
  switch (advice) {
    case Advice::normal:
    case Advice::sequential:
    case Advice::random:
      for (std::size_t i = begin; i < end; ++i) {
        auto& now = state_.chunks[i].advice;
        if (now.load(std::memory_order_relaxed) == advice) continue;
        now.store(advice, std::memory_order_relaxed);
      }
      return;
    case Advice::will_need:
      return read_ahead_.request(begin, end);
    case Advice::dont_need:
      return drop_chunks(first, count);
  }
}

// Evicts the clean chunks that are wholly in the range; the others are evicted first when memory is
// short.
void PagedMemory::drop_chunks(PageNumber first, std::size_t count) {
  const PageNumber end = first + count;
  const std::size_t begin_chunk = chunk_of(first + chunk_pages() - 1);
  // The region's end may cut its last chunk.
  const std::size_t end_chunk =
      end * kPageBytes >= size_bytes() ? state_.chunk_count() : end / chunk_pages();
  std::size_t staying = 0;  // chunks that stay, just before this one
  for (std::size_t index = begin_chunk; index < end_chunk; ++index) {
    state_.eviction.make_cold(index);
    if (!state_.chunks.is_missing(index)) evictor_.evict(index, WhenDirty::stay);
    if (!state_.chunks.is_missing(index)) {
      ++staying;
      continue;
    }
    state_.eviction.hint(index - staying, staying);
    staying = 0;
  }
  if (begin_chunk < end_chunk) state_.eviction.hint(end_chunk - staying, staying);
}

std::size_t PagedMemory::untouched_zeros(PageNumber first, std::size_t limit) const noexcept {
  if (limit == 0) return 0;
  const std::size_t end = (first + limit - 1) / kTablePages + 1;
  const std::size_t table = state_.chunks.next_touched(first / kTablePages, end);
  const PageNumber touched = std::min<PageNumber>(table * kTablePages, first + limit);
  return touched > first ? state_.zeros_from(first, static_cast<std::size_t>(touched - first)) : 0;
}

void PagedMemory::stay_within_limit() noexcept {
  if (const std::size_t lacking = state_.pager->lacking(0); lacking != 0)
    evictor_.make_room(lacking);
}

std::vector<format::PageRange> PagedMemory::working_set() {
  if (state_.working_set == nullptr) return {};
  const ReadAheadPause pause(state_, read_ahead_);
  return prefetcher_.used_ranges();
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
  if (joined_) state_.pager->grown(new_size - old_size);
  const int error = open_cut_chunk(old_size, new_size);
  if (error != 0) shrink(new_size, old_size);
  require(error);
}

// Chunks beyond the end are evicted before the size changes: afterwards they no longer can be.
void PagedMemory::shrink(std::uint64_t old_size, std::uint64_t new_size) {
  const ReadAheadPause pause(state_, read_ahead_);
  for (std::size_t i = state_.chunks_of(new_size); i < state_.chunks_of(old_size); ++i) {
    if (!state_.chunks.is_missing(i)) evictor_.evict(i, WhenDirty::stay);
  }
  size_bytes_.store(new_size, std::memory_order_release);
  if (joined_) state_.pager->shrunk(old_size - new_size);
  const int error = protect_beyond(old_size, new_size);
  if (error == 0) return;
  fail(Errc::out_of_memory, "cannot shrink the region: {}", std::strerror(error));
}

// A chunk that the old end cut may already be present. Nothing else would fill its new pages when a
// system call accesses them first.
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
