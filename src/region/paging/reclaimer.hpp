// region/paging/reclaimer.hpp: the thread that gives back memory which regions hold without need.
//
// A process has one while regions are joined. It asks them in turn for about a millisecond's worth
// of work each, and sleeps as long as they say, or until a commit wakes it.
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

// A region, as the thread sees it.
class ReclaimTarget {
 public:
  virtual ~ReclaimTarget() = default;
  // Works for about a millisecond. Returns when it wants to be asked again; none: after wake().
  virtual std::optional<std::chrono::milliseconds> reclaim() noexcept = 0;
};

class Reclaimer {
 public:
  Reclaimer() = default;
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Like Pager::of_process(): a child of fork() gets another one, and none is ever destroyed.
  static Reclaimer& of_process();

  // False: there is no memory, or no thread, for it.
  bool join(ReclaimTarget& target) noexcept;
  // Returns when the thread no longer uses the target.
  void leave(ReclaimTarget& target) noexcept;
  // Says that there may be work. Cheap unless the thread sleeps. Not in a signal handler.
  void wake() noexcept;

 private:
  void run(std::uint64_t life);
  std::optional<std::chrono::milliseconds> ask_all(std::unique_lock<std::mutex>& lock,
                                                   std::uint64_t life);

  std::atomic<std::uint32_t> calls_{0};
  std::atomic<bool> asleep_{false};  // until a call
  std::mutex mutex_;                 // guards the members below
  std::condition_variable changed_;
  std::vector<ReclaimTarget*> targets_;
  ReclaimTarget* current_ = nullptr;  // the thread is in its reclaim()
  std::uint64_t life_ = 0;            // counts threads: one of an earlier life ends
  std::thread thread_;
};

}  // namespace vellum::region
