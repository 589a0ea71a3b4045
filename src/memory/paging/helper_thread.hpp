// memory/paging/helper_thread.hpp: a thread that runs the background tasks of a process's regions
// in turn.
//
// A process has two helper threads, each while regions have joined that may have work for it:
//  - one reads ahead, and fills chunks that the program has requested or is likely to access.
//    Decompression is most of a fault's cost, so a sequential reader and this thread together read
//    nearly twice as fast as the reader by itself;
//  - one drops memory that regions hold without need.
// The second works for a millisecond at a time, and a reader would wait for it; hence two threads.
// Each asks its tasks in turn for a step, and sleeps when none has work.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace vellum::region {

class BackgroundTask {
 public:
  virtual ~BackgroundTask() = default;
  // Does a step of work. Returns the pause before the next step, 0: none; nothing: it sleeps until
  // wake().
  virtual std::optional<std::chrono::milliseconds> step() noexcept = 0;
};

class HelperThread {
 public:
  HelperThread() = default;
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;

  // Like Pager::of_process(): a child of fork() gets its own, and none is ever destroyed.
  static HelperThread& read_ahead_thread();
  static HelperThread& reclaim_thread();

  // The thread runs the task soon. False: no memory, or no thread, is available, and the task has
  // not joined. REQUIRES: the task has not joined this thread.
  bool join(BackgroundTask& task) noexcept;
  // Returns when the thread no longer uses the task. REQUIRES: joined.
  void leave(BackgroundTask& task) noexcept;
  // There may be work. Cheap, unless the thread sleeps without a time limit. Any context.
  void wake() noexcept;

 private:
  void run(std::uint32_t life);
  std::optional<std::chrono::milliseconds> run_all(std::unique_lock<std::mutex>& lock,
                                                   std::uint32_t life);
  void sleep_until_wake(std::uint32_t calls) noexcept;

  std::atomic<std::uint32_t> calls_{0};  // of wake()
  std::atomic<std::uint32_t> asleep_{
      0};                               // waiting threads; one of an earlier life may be among them
  std::atomic<std::uint32_t> life_{0};  // counts threads: one of an earlier life ends
  std::mutex mutex_;                    // guards changes of life_, and the members below
  std::condition_variable step_ended_;
  std::vector<BackgroundTask*> tasks_;
  BackgroundTask* current_ = nullptr;  // the thread is in its step()
  std::thread thread_;
};

}  // namespace vellum::region
