#include "memory/paged/read_ahead.hpp"

#include <algorithm>
#include <cassert>

#include "memory/paged/bulk_loader.hpp"
#include "memory/paged/evictor.hpp"
#include "memory/paged/fill/chunk_filler.hpp"
#include "memory/paged/fill/prefetcher.hpp"

namespace vellum::region {
namespace {

constexpr std::size_t kMaxAheadBytes = 2u << 20;
constexpr std::size_t kAnnouncedBytes = 512u << 10;
constexpr std::size_t kLimitShare = 16;  // of the memory limit, for chunks that are read ahead
constexpr std::size_t kMaxRequests = 256;

}  // namespace

void ReadAhead::start() {
  const auto& source = state_.source.shared();
  const bool ahead = max_ahead() != 0 || prefetcher_.has_candidates();
  if (!ahead || source == nullptr || source->mentions_nothing()) return;
  const std::lock_guard lock(mutex_);
  join();
}

void ReadAhead::start_after_commit() {
  if (max_ahead() == 0 || is_running()) return;
  const std::lock_guard lock(mutex_);
  join();
}

void ReadAhead::stop() noexcept {
  if (HelperThread* const ahead = thread_.exchange(nullptr)) ahead->leave(*this);
}

// REQUIRES: mutex_ is held; stop() does not run meanwhile.
void ReadAhead::join() noexcept {
  if (thread_.load() != nullptr) return;
  HelperThread& ahead = HelperThread::read_ahead_thread();
  if (ahead.join(*this)) thread_.store(&ahead);
}

std::size_t ReadAhead::max_ahead() const noexcept {
  return std::min(kMaxAheadBytes, state_.pager->limit_bytes() / kLimitShare) / state_.chunk_bytes();
}

// A chunk that cannot be read is left to the fault that needs it.
void ReadAhead::fill_while_claimed(std::size_t index, ReadStreams::Window window,
                                   bool for_writing) noexcept {
  store::ReadFailure ignored;
  while (!window.empty() && state_.chunks[index].state.load() == Chunk::kClaimed) {
    if (const std::size_t next = window.take(); state_.worth_reading_ahead(next)) {
      filler_.fill(next, ignored, first_page_if(for_writing, next));
    }
  }
}

// The first page of a chunk that a stream of writes accesses.
std::optional<PageNumber> ReadAhead::first_page_if(bool for_writing,
                                                   std::size_t index) const noexcept {
  return for_writing ? std::optional<PageNumber>(index * state_.chunk_pages()) : std::nullopt;
}

void ReadAhead::request(std::size_t first_chunk, std::size_t end_chunk) {
  assert(first_chunk <= end_chunk);
  const std::size_t most =
      std::max<std::size_t>(state_.pager->limit_bytes() / 2 / state_.chunk_bytes(), 1);
  {
    const std::lock_guard lock(mutex_);
    requested_.push_back({first_chunk, std::min(end_chunk, first_chunk + most)});
    if (requested_.size() > kMaxRequests) requested_.pop_front();
    join();
  }
  wake();
}

bool ReadAhead::next_requested(std::size_t& index) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t chunks = state_.chunk_count();
  while (!requested_.empty()) {
    auto& window = requested_.front();
    while (!window.empty() && window.first < chunks && !state_.chunks.is_missing(window.first))
      ++window.first;
    if (!window.empty() && window.first < chunks) {
      index = window.first++;
      return true;
    }
    requested_.pop_front();
  }
  return false;
}

// Read-ahead is dispensable: it waits neither for chunks nor for memory.
bool ReadAhead::make_room() noexcept {
  if (state_.pager->is_doubtful()) return false;
  const std::size_t lacking = state_.pager->lacking(state_.chunk_pages());
  return lacking == 0 || evictor_.make_room(lacking) >= lacking;
}

std::optional<std::chrono::milliseconds> ReadAhead::step() noexcept {
  const bool any = state_.reading_ahead.enter() && fill_next();
  state_.reading_ahead.leave();
  if (!any) return std::nullopt;
  return std::chrono::milliseconds(0);
}

// The kernel reads ahead in a file, too, but not backwards. The spill file therefore announces the
// chunks that the stream accesses later; the records of a chunk are adjacent there.
void ReadAhead::announce_spilled(const ReadStreams::Ahead& ahead) noexcept {
  if (!state_.has_spilled()) return;
  const std::size_t distance = kAnnouncedBytes / state_.chunk_bytes();
  if (ahead.downwards && ahead.chunk < distance) return;
  const std::size_t chunk = ahead.downwards ? ahead.chunk - distance : ahead.chunk + distance;
  if (chunk >= state_.chunk_count()) return;
  state_.spill->will_load(chunk * state_.chunk_pages(), state_.pages_of(chunk));
}

// In this order: by faults, by advice, the last working set, all of a version.
bool ReadAhead::fill_next() noexcept {
  store::ReadFailure ignored;
  if (const auto ahead = state_.streams.next()) {
    announce_spilled(*ahead);
    if (state_.worth_reading_ahead(ahead->chunk) && make_room()) {
      filler_.fill(ahead->chunk, ignored, first_page_if(ahead->writes, ahead->chunk));
    }
    return true;
  }
  std::size_t index = 0;
  if (next_requested(index)) {
    if (make_room()) filler_.fill(index, ignored);
    return true;
  }
  return bulk_loader_.step();
}

}  // namespace vellum::region
