// Read-ahead: chunks that are likely to be touched soon come in early, by the program's advice or by
// the order of its faults.
//
// Two threads bring in what a sequential reader will touch: the process's read-ahead thread and the
// reader itself. The reader does not wait for a chunk that the thread has claimed but takes the
// next one meanwhile, so both decompress all the time.
#include <algorithm>

#include "memory/paged/paged_memory.hpp"

namespace vellum::region {
namespace {

constexpr std::size_t kMaxAheadBytes = 2u << 20;
constexpr std::size_t kAnnouncedBytes = 512u << 10;
constexpr std::size_t kLimitShare = 16;  // of the memory limit, for what is read ahead

}  // namespace

// No thread starts where nothing can be read. Reads nothing itself: the version may be at a remote.
void PagedMemory::start_read_ahead() {
  const auto& source = source_.shared();
  const bool ahead = most_ahead() != 0 || (working_set_ && working_set_->any_wanted());
  if (!ahead || source == nullptr || source->mentions_nothing()) return;
  const std::lock_guard lock(wanted_mutex_);
  join_read_ahead();
}

// REQUIRES: wanted_mutex_ is held; stop_service() does not run meanwhile.
void PagedMemory::join_read_ahead() noexcept {
  if (read_ahead_.load() != nullptr) return;
  HelperThread& ahead = HelperThread::read_ahead_thread();
  if (ahead.join(help_ahead_)) read_ahead_.store(&ahead);
}

std::size_t PagedMemory::most_ahead() const noexcept {
  return std::min(kMaxAheadBytes, pager_->limit_bytes() / kLimitShare) / chunk_bytes();
}

// Zeros come in by 2 MiB anyway, and count as memory.
bool PagedMemory::worth_reading_ahead(std::size_t index) const noexcept {
  if (index >= chunks_of(size_bytes()) || !chunks_.is_missing(index)) return false;
  if (chunks_[index].advice.load(std::memory_order_relaxed) == Advice::random) return false;
  return !holds_nothing(index * chunk_pages());
}

// Runs in the fault handler, before chunk `index` is filled. A chunk that cannot be read is left
// for the fault that needs it.
void PagedMemory::read_ahead_of(std::size_t index, bool for_writing) noexcept {
  HelperThread* const ahead = read_ahead_.load(std::memory_order_acquire);
  const Advice advice = chunks_[index].advice.load(std::memory_order_relaxed);
  if (ahead == nullptr || advice == Advice::random) return;
  auto window =
      streams_.note_fault({index, advice == Advice::sequential, for_writing}, most_ahead());
  if (window.empty()) return;
  ahead->wake();
  store::ReadFailure ignored;
  while (!window.empty() && chunks_[index].state.load() == Chunk::kClaimed) {
    if (const std::size_t next = window.take(); worth_reading_ahead(next)) {
      fill(next, ignored, first_if(for_writing, next));
    }
  }
}

// The page that a stream of writes comes to first in a chunk.
std::optional<PageNumber> PagedMemory::first_if(bool for_writing,
                                                std::size_t index) const noexcept {
  return for_writing ? std::optional<PageNumber>(index * chunk_pages()) : std::nullopt;
}

// Read-ahead is dispensable: it waits neither for chunks nor for memory.
bool PagedMemory::make_room_ahead() noexcept {
  if (pager_->is_doubtful()) return false;
  const std::size_t lacking = pager_->lacking(chunk_pages());
  return lacking == 0 || make_room(lacking) >= lacking;
}

std::optional<std::chrono::milliseconds> PagedMemory::read_ahead() noexcept {
  const bool any = reading_ahead_.enter() && read_next();
  reading_ahead_.leave();
  if (!any) return std::nullopt;
  return std::chrono::milliseconds(0);
}

// The kernel reads ahead in a file, too, but not backwards. So it is told what the stream comes to
// after a while, by chunks that lie together in the spill file.
void PagedMemory::announce_spilled(const ReadStreams::Ahead& ahead) noexcept {
  if (!has_spilled()) return;
  const std::size_t distance = kAnnouncedBytes / chunk_bytes();
  if (ahead.downwards && ahead.chunk < distance) return;
  const std::size_t chunk = ahead.downwards ? ahead.chunk - distance : ahead.chunk + distance;
  if (chunk < chunks_of(size_bytes())) spill_->will_load(chunk * chunk_pages(), pages_of(chunk));
}

// By faults first, then by advice, then the last use's working set, then all of a version.
bool PagedMemory::read_next() noexcept {
  store::ReadFailure ignored;
  if (const auto ahead = streams_.next()) {
    announce_spilled(*ahead);
    if (worth_reading_ahead(ahead->chunk) && make_room_ahead()) {
      fill(ahead->chunk, ignored, first_if(ahead->writes, ahead->chunk));
    }
    return true;
  }
  std::size_t index = 0;
  if (next_wanted(index)) {
    if (make_room_ahead()) fill(index, ignored);
    return true;
  }
  return load_step();
}

}  // namespace vellum::region
