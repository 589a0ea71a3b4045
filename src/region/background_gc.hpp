// region/background_gc.hpp: garbage collection while a region writes.
//
// It runs gc (store/gc/gc.hpp), with its locks and its order of calls, and only decides when.
// Commits make packs grow. Periodically a thread compares their size with the size after the last
// gc (store/catalog/space_note.hpp), collects when enough may be free, and ends. It waits for locks
// only briefly, works on files between commits (region/gc_pacing.hpp), and stops between two steps
// when the region closes. A region that writes faster than gc frees space waits for it briefly.
//
// A failure of gc is no error of a commit. One line on standard error reports it, once. A gc that
// finds another one running, or the names locked, prints nothing and tries again later.
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
  using Policy = store::WriterPolicy::Gc;

  // By the store's policy (WriterPolicy). `head`: of the branch that the region
  // writes.
  BackgroundGc(std::shared_ptr<store::StoreDirectory> core, const format::Version& head);
  ~BackgroundGc();  // stops the thread; the next gc frees the rest
  BackgroundGc(const BackgroundGc&) = delete;
  BackgroundGc& operator=(const BackgroundGc&) = delete;

  // A commit that writes holds a GcPacing::Commit of it.
  GcPacing& pacing() noexcept { return pacing_; }
  // Records the bytes that a finished commit has written, to the journal or to packs.
  void note_written(std::uint64_t bytes) noexcept;
  // The disk is full: collects now. True: space was freed, or a gc was already running.
  bool make_room() noexcept;
  // The region closes: ends the collection in progress, or checks once more, within a second. Small
  // writers check only on a fraction of closes.
  void finish() noexcept;

 private:
  struct Stopped {};
  // `at_steps`: called before each change of the disk; may be null.
  void look(const std::function<void()>& at_steps = nullptr) noexcept;
  bool collect(std::chrono::milliseconds patience, const std::function<void()>& at_steps = nullptr);
  void start() noexcept;
  bool wait_idle(std::chrono::milliseconds longest);
  void stop_if_asked() const;
  void report(const char* problem) noexcept;

  const std::shared_ptr<store::StoreDirectory> core_;
  const Policy policy_;
  // The bytes ever written to the branch. Branches start at different offsets of a step, so that
  // among many small writers one checks from time to time.
  std::uint64_t position_bytes_, looked_at_bytes_;
  std::atomic<std::uint64_t> step_bytes_, ahead_bytes_;  // grow with the store
  std::atomic<bool> stop_{false};
  std::atomic<std::chrono::steady_clock::time_point> deadline_;
  bool reported_ = false;
  GcPacing pacing_;
  std::thread thread_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable idle_;
  bool busy_ = false;
};

}  // namespace vellum::region
