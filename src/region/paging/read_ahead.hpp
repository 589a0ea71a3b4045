// region/paging/read_ahead.hpp: the thread that brings chunks in before they are touched.
//
// One a process, while regions are joined that may have something to read ahead. It asks them in
// turn for a chunk's worth of work, and sleeps when none has any; a fault handler wakes it.
// Decompression is most of what a fault costs, so a reader in order and this thread together read
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
  // About a chunk's worth of work. False: there was nothing to do.
  virtual bool read_ahead_step() noexcept = 0;
};

class ReadAhead {
 public:
  ReadAhead() = default;
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // As Pager::of_process(): a child of fork() gets another one, and none is ever destroyed.
  static ReadAhead& of_process();

  // False: there is no memory for it. Without a thread nothing is read ahead.
  bool join(ReadAheadTarget& target) noexcept;
  // Returns when the thread does not use the target any more.
  void leave(ReadAheadTarget& target) noexcept;
  // There may be something to do. Any context.
  void wake() noexcept {
    calls_.fetch_add(1);
    calls_.notify_one();
  }

 private:
  void run(std::uint64_t life);

  std::atomic<std::uint32_t> calls_{0};
  std::mutex mutex_;  // of what follows
  std::condition_variable stepped_;
  std::vector<ReadAheadTarget*> targets_;
  ReadAheadTarget* current_ = nullptr;  // the thread is in its read_ahead_step()
  std::uint64_t life_ = 0;              // counts threads: one of an earlier life ends
  std::thread thread_;
};

}  // namespace vellum::region
