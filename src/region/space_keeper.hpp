// region/space_keeper.hpp: gives back what nothing needs any more, while a region writes.
//
// It is gc (store/gc/gc.hpp), with its locks and its order of calls; the keeper only says when.
// Packs grow by what commits write; now and then a thread compares their size with what the last gc
// has left (store/catalog/space_note.hpp), and collects when enough may have become free. The
// thread ends with that. It waits for no lock for long, works on files between commits
// (region/turns.hpp), and stops between two steps when the region closes. A region that writes
// faster than its keeper collects waits for it a little.
//
// What goes wrong there is no error of a commit. A line on standard error says it, once; a gc that
// finds another at work, or the names held, says nothing, and comes again later.
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

#include "region/turns.hpp"
#include "store/catalog/store_core.hpp"

namespace vellum::region {

class SpaceKeeper {
 public:
  struct Policy {
    std::uint64_t slack_bytes = 32u << 20;  // what may be free, at least, before a gc is worth it
    std::uint64_t step_bytes = 4u << 20;    // written from one look to the next, at least
    // Written during a gc, and not made up for by what it has freed, before a commit waits for its
    // end, at least.
    std::uint64_t ahead_bytes = 16u << 20;
    bool in_call = false;  // for tests: no thread, the commit itself does it, at the same places
  };
  // For tests, in a process that has no region open: of all keepers made from here on.
  static void set_policy(const Policy& policy);

  // `head`: of the branch that the region writes.
  SpaceKeeper(std::shared_ptr<store::StoreCore> core, const format::Version& head);
  ~SpaceKeeper();  // stops; what a gc was about to free stays for the next
  SpaceKeeper(const SpaceKeeper&) = delete;
  SpaceKeeper& operator=(const SpaceKeeper&) = delete;

  // A commit that writes takes one of these turns.
  Turns& turns() noexcept { return turns_; }
  // A commit that is over has written so much, to the journal or to packs.
  void note_written(std::uint64_t bytes) noexcept;
  // The disk is full: collects now. True: something was freed.
  bool make_room() noexcept;
  // The region closes: ends what is going on, or looks once more, within a second. Of regions that
  // write little and close it is one in so many that looks.
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

  const std::shared_ptr<store::StoreCore> core_;
  const Policy policy_;
  // How far the branch has come, in bytes that were ever written; branches begin at different
  // places of a step, so that of many with a little each one looks now and then.
  std::uint64_t position_bytes_, looked_at_bytes_;
  std::atomic<std::uint64_t> step_bytes_, ahead_bytes_;  // grow with what is needed
  std::atomic<bool> stop_{false};
  std::atomic<std::chrono::steady_clock::time_point> deadline_;
  bool told_ = false;
  Turns turns_;
  std::thread thread_;
  std::mutex mutex_;  // of what follows
  std::condition_variable idle_;
  bool busy_ = false;
};

}  // namespace vellum::region
