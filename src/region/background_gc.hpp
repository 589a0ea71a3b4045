// region/background_gc.hpp: garbage collection while a region writes.
//
// The keeper runs gc (store/gc/gc.hpp), with its locks and its order of calls; it only decides
// when. Commits make packs grow. Now and then a thread compares their size with the size that the
// last gc left (store/catalog/space_note.hpp), collects when enough may have become free, and ends.
// It waits for no lock for long, works on files between commits (region/gc_pacing.hpp), and stops
// between two steps when the region closes. A region that writes faster than its keeper collects
// waits for it a little.
//
// A failure there is no error of a commit. One line on standard error reports it, once. A gc that
// finds another at work, or the names held, prints nothing and comes again later.
//
// Threads: one call at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "region/gc_pacing.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::region {

class BackgroundGc {
 public:
  struct Policy {
    std::uint64_t slack_bytes = 32u << 20;  // least free space that makes a gc worth it
    std::uint64_t step_bytes = 4u << 20;    // least written from one look to the next
    // The least that is written during a gc, beyond what it has freed, before a commit waits for
    // its end.
    std::uint64_t ahead_bytes = 16u << 20;
    bool in_call = false;  // for tests: no thread; the commit itself collects, at the same places
  };
  // For tests, in a process without open regions: the policy of all keepers made from here on.
  static void set_policy(const Policy& policy);

  // `head`: of the branch that the region writes.
  BackgroundGc(std::shared_ptr<store::StoreDirectory> core, const format::Version& head);
  ~BackgroundGc();  // stops; what a gc was about to free stays for the next
  BackgroundGc(const BackgroundGc&) = delete;
  BackgroundGc& operator=(const BackgroundGc&) = delete;

  // A commit that writes takes one of these turns.
  GcPacing& pacing() noexcept { return pacing_; }
  // Notes what a finished commit has written, to the journal or to packs.
  void note_written(std::uint64_t bytes) noexcept;
  // The disk is full: collects now. True: something was freed, or a gc was already at work.
  bool make_room() noexcept;
  // The region closes: ends the collection in progress, or looks once more, within a second. Of the
  // regions that write little and close, one in many looks.
  void finish() noexcept;

 private:
  struct Stopped {};
  // `at_steps`: called before each change of the disk; may be null.
  void look(const std::function<void()>& at_steps = nullptr) noexcept;
  bool collect(std::chrono::milliseconds patience, const std::function<void()>& at_steps = nullptr);
  void start() noexcept;
  bool wait_idle(std::chrono::milliseconds longest);
  void stop_if_asked() const;
  void tell(const char* problem) noexcept;

  const std::shared_ptr<store::StoreDirectory> core_;
  const Policy policy_;
  // How far the branch has come, in bytes ever written. Branches begin at different places of a
  // step, so that among many that write little each, one looks now and then.
  std::uint64_t position_bytes_, looked_at_bytes_;
  std::atomic<std::uint64_t> step_bytes_, ahead_bytes_;  // grow with the need
  std::atomic<bool> stop_{false};
  std::atomic<std::chrono::steady_clock::time_point> deadline_;
  bool told_ = false;
  GcPacing pacing_;
  std::thread thread_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable idle_;
  bool busy_ = false;
};

}  // namespace vellum::region
