// memory/paged/read_ahead.hpp: fills chunks that are likely to be accessed soon: by the order of
// the program's faults, or by its advice.
//
// Two threads fill the chunks ahead of a sequential reader: the process's read-ahead thread and the
// reader itself. The reader does not wait for a chunk that the thread has claimed but fills the
// next one meanwhile, so both decompress all the time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

#include "memory/paged/fill/paged_state.hpp"
#include "memory/paging/helper_thread.hpp"

namespace vellum::region {

class BulkLoader;
class ChunkFiller;
class Evictor;
class Prefetcher;

class ReadAhead final : public BackgroundTask {
 public:
  // The references outlive the object; the constructor uses none of them.
  ReadAhead(PagedState& state, ChunkFiller& filler, Evictor& evictor, Prefetcher& prefetcher,
            BulkLoader& bulk_loader) noexcept
      : state_(state),
        filler_(filler),
        evictor_(evictor),
        prefetcher_(prefetcher),
        bulk_loader_(bulk_loader) {}

  // Joins the read-ahead thread, unless nothing can be read. Reads nothing itself: the version may
  // be at a remote.
  void start();
  // The source has changed: there may be something to read now.
  void start_after_commit();
  // On return the thread no longer uses this object. REQUIRES: no other call runs.
  void stop() noexcept;
  // Whether this memory has joined the thread. Any context.
  bool is_running() const noexcept { return thread() != nullptr; }
  // Any context.
  void wake() noexcept {
    if (HelperThread* const ahead = thread()) ahead->wake();
  }
  // At most this many chunks are read ahead of a reader. Any context.
  std::size_t max_ahead() const noexcept;

  // In the fault handler: while another thread fills chunk `index`, fills chunks of the window.
  void fill_while_claimed(std::size_t index, ReadStreams::Window window, bool for_writing) noexcept;
  // The program will need these chunks soon. They are filled up to half of the memory limit: more
  // would evict the first of them.
  void request(std::size_t first_chunk, std::size_t end_chunk);

  // BackgroundTask.
  std::optional<std::chrono::milliseconds> step() noexcept override;

 private:
  HelperThread* thread() const noexcept { return thread_.load(std::memory_order_acquire); }
  void join() noexcept;
  bool fill_next() noexcept;
  bool next_requested(std::size_t& index) noexcept;
  bool make_room() noexcept;
  void announce_spilled(const ReadStreams::Ahead& ahead) noexcept;
  std::optional<PageNumber> first_page_if(bool for_writing, std::size_t index) const noexcept;

  PagedState& state_;
  ChunkFiller& filler_;
  Evictor& evictor_;
  Prefetcher& prefetcher_;
  BulkLoader& bulk_loader_;
  std::atomic<HelperThread*> thread_{nullptr};  // null: not joined
  std::mutex mutex_;                            // guards requested_, and joining
  std::deque<ReadStreams::Window> requested_;
};

// While it lives, no chunk is read ahead.
class ReadAheadPause {
 public:
  // Waits for the step in progress. REQUIRES: this thread has no chunk claimed or held.
  ReadAheadPause(PagedState& state, ReadAhead& read_ahead) noexcept
      : state_(state), read_ahead_(read_ahead) {
    state_.reading_ahead.close();
  }
  ~ReadAheadPause() {
    state_.reading_ahead.open();
    read_ahead_.wake();
  }
  ReadAheadPause(const ReadAheadPause&) = delete;
  ReadAheadPause& operator=(const ReadAheadPause&) = delete;

 private:
  PagedState& state_;
  ReadAhead& read_ahead_;
};

}  // namespace vellum::region
