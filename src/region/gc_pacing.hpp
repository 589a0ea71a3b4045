// region/gc_pacing.hpp: alternates between a region's commits and the steps of its gc.
//
// A step changes files that commits also write. The kernel locks a file for each of them and
// collects both in one transaction of the file system, so a commit during a step waits for it, and
// for the processor that the step's thread may lack. Steps therefore start between commits. A
// region that commits without a pause has no gap for them: a commit that has written waits until gc
// has freed about as much.
//
// Threads: commits one at a time; steps one at a time, in another thread or the same.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace vellum::region {

class GcPacing {
 public:
  // The longest wait of a step, and of a commit, for the other.
  explicit GcPacing(
      std::chrono::milliseconds longest_of_step = std::chrono::milliseconds(50),
      std::chrono::milliseconds longest_of_commit = std::chrono::milliseconds(20)) noexcept
      : longest_of_step_(longest_of_step), longest_of_commit_(longest_of_commit) {}

  // While it exists, no step starts, except one that has waited for the longest time.
  class Commit {
   public:
    explicit Commit(GcPacing& turns) noexcept;
    Commit(Commit&& other) noexcept : pacing_(std::exchange(other.pacing_, nullptr)) {}
    ~Commit();
    Commit& operator=(Commit&&) = delete;

   private:
    GcPacing* pacing_;
  };

  // While it exists, a collection is running.
  class Collection {
   public:
    explicit Collection(GcPacing& turns) noexcept;
    ~Collection();
    Collection(const Collection&) = delete;
    Collection& operator=(const Collection&) = delete;
    // Waits while a commit writes. `freed_bytes`: freed by all steps before this one.
    void next_step(std::uint64_t freed_bytes) noexcept;

   private:
    GcPacing& pacing_;
  };

  // After a commit that has written so much: waits briefly until gc has freed about as much. True:
  // gc is behind by `most_lag_bytes`, which is reported once.
  bool keep_in_step(std::uint64_t written_bytes, std::uint64_t most_lag_bytes) noexcept;

 private:
  const std::chrono::milliseconds longest_of_step_, longest_of_commit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int commits_ = 0;
  bool collecting_ = false, stepping_ = false;  // stepping: the first step has started
  // Since the collection began.
  std::uint64_t written_bytes_ = 0, freed_bytes_ = 0;
  std::uint64_t lag_bytes() const noexcept {
    return written_bytes_ - std::min(freed_bytes_, written_bytes_);
  }
};

}  // namespace vellum::region
