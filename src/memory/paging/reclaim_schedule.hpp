// memory/paging/reclaim_schedule.hpp: when private copies are dropped (memory/paged/reclaimer.hpp),
// and how many.
//
// A pass starts at two times:
//  - when no commit has run for a while (quiet): one pass after the last commit;
//  - while commits record many new pages, as a bulk load does.
// A pass first counts private pages and then drops copies until half of the threshold is left. Few
// private pages are kept: they take little memory and are likely to be written again. A region that
// takes a small share of the memory limit keeps everything.
//
// Pure: the caller passes the time and the counts. One thread at a time.
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <optional>

#include "memory/paging/sizes.hpp"

namespace vellum::region {

struct ReclaimPolicy {
  std::chrono::milliseconds between_passes{20};
  std::chrono::milliseconds quiet{500};  // after the last commit; then no chunk is in use
  // Private pages are too many when they exceed both; a pass ends when they are half as many.
  std::int64_t few_pages = 1024;
  std::int64_t share_of_base_copies = 16;  // a sixteenth of them
  // A region that takes less than this share of the memory limit keeps everything.
  std::uint64_t share_of_limit = 16;

  // The policy of regions that name none. set() is for tests, in a process without open regions.
  static ReclaimPolicy of_process() noexcept;
  static void set(const ReclaimPolicy& policy) noexcept;
};

class ReclaimSchedule {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Pause = std::optional<std::chrono::milliseconds>;

  explicit ReclaimSchedule(const ReclaimPolicy& policy) noexcept : policy_(policy) {}

  // What the caller observes before a pass.
  struct Observation {
    Time now;
    std::uint32_t commit_events = 0;  // scans and ends of commits so far
    std::int64_t base_copies = 0;
    bool grows = false;  // the last commit has recorded many new pages
    std::uint64_t limit_bytes = 0;
  };
  // Starts a pass, or returns the pause before the next call; 0: nothing is due before the next
  // commit. `found` private pages were found by scans since the last call that reset it; it is
  // read only when a pass is due. REQUIRES: no pass is running.
  template <typename TakeFound>
  Pause start_pass(const Observation& seen, const TakeFound& take_found) noexcept {
    using std::chrono::milliseconds;
    assert(!running_);
    if (seen.commit_events != events_) {
      events_ = seen.commit_events;
      changed_ = seen.now;
      done_quiet_ = false;
    }
    if (done_quiet_) return milliseconds(0);
    quiet_ = seen.now - changed_ >= policy_.quiet;
    if (!quiet_ && (!seen.grows || seen.now - ended_ < policy_.between_passes))
      return policy_.between_passes;
    done_quiet_ = quiet_;
    private_pages_ += take_found();
    if (!has_too_many(private_pages_, seen.base_copies) || !takes_much(seen)) {
      return quiet_ ? milliseconds(0) : policy_.between_passes;
    }
    running_ = true;
    return std::nullopt;
  }
  // During a pass: a commit ends the quiet.
  void note_events(std::uint32_t commit_events) noexcept {
    if (commit_events != events_) quiet_ = false;
  }
  // The first half of a pass has counted the private pages. False: too few, and the pass ends.
  bool note_counted(std::int64_t private_pages, std::int64_t base_copies, Time now) noexcept {
    assert(running_);
    private_pages_ = private_pages;
    if (!has_too_many(private_pages_, base_copies)) end_pass(now);
    return running_;
  }
  void note_dropped(std::int64_t pages) noexcept { private_pages_ -= pages; }
  // Whether the second half of the pass goes on: more than half of the threshold is left.
  bool goes_on(std::int64_t base_copies) const noexcept {
    return has_too_many(2 * private_pages_, base_copies);
  }
  void end_pass(Time now) noexcept {
    running_ = false;
    ended_ = now;
  }

  bool is_running() const noexcept { return running_; }
  bool is_quiet() const noexcept { return quiet_; }
  // Whether the pass makes no pauses: no commit runs, or private pages take much of the memory.
  bool is_urgent(std::int64_t base_copies) const noexcept {
    return quiet_ || private_pages_ > base_copies / kUrgentShare;
  }
  // At most.
  std::int64_t private_pages() const noexcept { return private_pages_; }

 private:
  static constexpr std::int64_t kUrgentShare = 4;

  bool has_too_many(std::int64_t pages, std::int64_t base_copies) const noexcept {
    return pages > policy_.few_pages && pages > base_copies / policy_.share_of_base_copies;
  }
  bool takes_much(const Observation& seen) const noexcept {
    const auto held =
        static_cast<std::uint64_t>(std::max<std::int64_t>(seen.base_copies + private_pages_, 0));
    return held * kPageBytes > seen.limit_bytes / policy_.share_of_limit;
  }

  const ReclaimPolicy policy_;
  std::int64_t private_pages_ = 0;
  std::uint32_t events_ = 0;  // of commits, as last observed
  Time changed_, ended_;
  bool running_ = false;
  bool quiet_ = false;       // no commit for a while
  bool done_quiet_ = false;  // the last pass since the last commit is done
};

}  // namespace vellum::region
