// region/paging/read_ahead.hpp: the thread that brings chunks in before they are touched.
//
// A process has one while regions are joined that may have something to read ahead. The thread asks
// them in turn for a chunk's worth of work and sleeps when none has any; a fault handler wakes it.
// Decompression is most of a fault's cost, so a sequential reader and this thread together read
// nearly twice as fast as the reader alone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace vellum::region {

// A region, as the thread sees it.
class ReadAheadTarget {
 public:
  virtual ~ReadAheadTarget() = default;
  // Does about a chunk's worth of work. False: there was nothing to do.
  virtual bool read_ahead_step() noexcept = 0;
};

class ReadAhead {
 public:
  ReadAhead() = default;
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Like Pager::of_process(): a child of fork() gets another one, and none is ever destroyed.
  static ReadAhead& of_process();

  // False: there is no memory for it. Without a thread nothing is read ahead.
  bool join(ReadAheadTarget& target) noexcept;
  // Returns when the thread no longer uses the target.
  void leave(ReadAheadTarget& target) noexcept;
  // Says that there may be work. Any context.
  void wake() noexcept {
    calls_.fetch_add(1);
    calls_.notify_one();
  }

 private:
  void run(std::uint64_t life);

  std::atomic<std::uint32_t> calls_{0};
  std::mutex mutex_;  // guards the members below
  std::condition_variable stepped_;
  std::vector<ReadAheadTarget*> targets_;
  ReadAheadTarget* current_ = nullptr;  // the thread is in its read_ahead_step()
  std::uint64_t life_ = 0;              // counts threads: one of an earlier life ends
  std::thread thread_;
};

}  // namespace vellum::region
