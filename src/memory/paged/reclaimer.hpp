// memory/paged/reclaimer.hpp: drops private copies that equal their base copies, in the background.
//
// A dirty page is held twice: as the program's private copy and as the base copy that a commit has
// brought up to date. If the program does not write the page again, the private copy is useless.
// But a write to a page without one costs more (2 us, otherwise 0.8). A helper thread
// (memory/paging/helper_thread.hpp) therefore makes passes only when ReclaimSchedule says so:
//  - after some time without a commit: over all chunks;
//  - while commits record many new pages, as a bulk load does: over the chunks in which the last
//    commit found no dirty page.
// Private pages of zeros that were never written are dropped in the same way. Concurrently with
// commits, a pass takes a small share of a processor, unless private pages take much of the memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "memory/paged/fill/paged_state.hpp"
#include "memory/paging/helper_thread.hpp"
#include "memory/paging/reclaim_schedule.hpp"

namespace vellum::region {

class MemoryAccount;

class Reclaimer final : public BackgroundTask {
 public:
  // The references outlive the object; the constructor uses none but the state.
  Reclaimer(PagedState& state, EngineHooks& engine, MemoryAccount& account);
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Commits call these in turn. A scan for dirty pages starts; `by_engine`:
  // EngineHooks::find_dirty() arms them.
  void begin_scan(bool by_engine) noexcept {
    found_by_engine_.store(by_engine, std::memory_order_relaxed);
  }
  // The scan has found these, ascending.
  void note_dirty(const std::vector<PageNumber>& pages) noexcept;
  void note_commit_end() noexcept;
  // On return no thread uses this object. REQUIRES: no other call runs.
  void stop() noexcept;

  // BackgroundTask: about a millisecond of a pass. With MemoryOptions::reclaim_clock no thread
  // calls it, and the owner of the clock does.
  std::optional<std::chrono::milliseconds> step() noexcept override;

 private:
  using Time = ReclaimSchedule::Time;
  enum class PassStage { count, drop };
  Time now() const {
    return state_.options.reclaim_clock ? state_.options.reclaim_clock()
                                        : std::chrono::steady_clock::now();
  }
  bool grows() const noexcept;  // the last commit has recorded many new pages
  void count_next_table() noexcept;
  void drop_from_next_table() noexcept;
  bool is_idle(std::size_t index) noexcept;
  void drop_copies(std::size_t index, std::size_t count) noexcept;

  PagedState& state_;
  EngineHooks& engine_;
  MemoryAccount& account_;
  HelperThread* thread_ = nullptr;  // null: not joined; commits' own

  // Of commits; the thread reads them.
  std::atomic<bool> found_by_engine_{true};  // the last scan has armed the dirty pages
  std::atomic<std::uint32_t> scans_{0};
  std::atomic<std::uint32_t> commit_events_{0};  // scans, and ends of commits
  std::atomic<std::int64_t> found_dirty_{0};     // pages that scans have found since the last pass
  std::atomic<std::int64_t> base_copies_at_scan_{0};

  // The thread's own: the pass.
  ReclaimSchedule schedule_;
  PassStage stage_ = PassStage::count;
  std::size_t table_ = 0;     // the next one to visit
  std::int64_t counted_ = 0;  // private pages, so far
};

}  // namespace vellum::region
