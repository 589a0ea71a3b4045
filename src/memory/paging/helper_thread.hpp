// memory/paging/helper_thread.hpp: a thread that works for the regions of a process, in turn.
//
// A process has two of them, each while regions are joined that may have work for it:
//  - one reads ahead, and brings in what the program has asked for or is likely to touch.
//    Decompression is most of a fault's cost, so a sequential reader and this thread together read
//    nearly twice as fast as the reader alone;
//  - one gives back memory that regions hold without need.
// They are two because the second works for a millisecond at a time, and a reader would wait for
// it. Each asks its regions in turn for a step of work, and sleeps when none has any.
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

// A region, as such a thread sees it.
class HelpedRegion {
 public:
  virtual ~HelpedRegion() = default;
  // Does a step of work. Returns when it wants to be asked again, 0: at once; none: after wake().
  virtual std::optional<std::chrono::milliseconds> help() noexcept = 0;
};

// A member function of a region as its help().
template <class Region>
class Help final : public HelpedRegion {
 public:
  using Step = std::optional<std::chrono::milliseconds> (Region::*)() noexcept;
  Help(Region& region, Step step) noexcept : region_(region), step_(step) {}
  std::optional<std::chrono::milliseconds> help() noexcept override { return (region_.*step_)(); }

 private:
  Region& region_;
  const Step step_;
};

class HelperThread {
 public:
  HelperThread() = default;
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;

  // Like Pager::of_process(): a child of fork() gets others, and none is ever destroyed.
  static HelperThread& read_ahead_thread();
  static HelperThread& that_reclaims();

  // The thread asks the region soon. False: there is no memory, or no thread, for it, and the region
  // has not joined.
  bool join(HelpedRegion& region) noexcept;
  // Returns when the thread no longer uses the region.
  void leave(HelpedRegion& region) noexcept;
  // Says that there may be work. Cheap unless the thread sleeps without a time. Any context.
  void wake() noexcept;

 private:
  void run(std::uint32_t life);
  std::optional<std::chrono::milliseconds> ask_all(std::unique_lock<std::mutex>& lock,
                                                   std::uint32_t life);
  void sleep_until_call(std::uint32_t calls) noexcept;

  std::atomic<std::uint32_t> calls_{0};
  std::atomic<std::uint32_t> asleep_{
      0};                               // threads that wait for a call: one of an earlier life may
  std::atomic<std::uint32_t> life_{0};  // counts threads: one of an earlier life ends
  std::mutex mutex_;                    // guards changes of life_, and the members below
  std::condition_variable asked_;
  std::vector<HelpedRegion*> regions_;
  HelpedRegion* current_ = nullptr;  // the thread is in its help()
  std::thread thread_;
};

}  // namespace vellum::region
