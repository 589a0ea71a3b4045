// memory/paging/pager.hpp: the memory limit of regions.
//
// A pager has a limit and the regions that share it. The regions of a process share one pager,
// except for a region with a limit of its own. The pager counts their pages in memory (base copies
// and private copies). A thread that fills pages beyond the limit first makes room in its own
// region. The pager's own thread starts earlier, which makes that rare, and balances the regions.
//
// The kernel reports neither private copies, which first writes to resident pages create, nor zero
// pages that reads allocate. The thread therefore polls: every 2 ms (20 ms while at most half of
// the limit is used) it reads the private memory of the process, adds the regions' unreported
// pages, and makes the regions count when the sum has grown.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace vellum::region {

// A region, as its pager sees it.
class Pageable {
 public:
  virtual ~Pageable() = default;
  // Frees about `pages` pages; returns how many. Any context.
  virtual std::size_t make_room(std::size_t pages) noexcept = 0;
  // Counts its pages and reports the difference (Pager::add_pages). Not from the fault handler.
  virtual void measure() noexcept = 0;
  // Pages of its own files that were not reported. Not from the fault handler.
  virtual std::int64_t unreported_pages() const noexcept = 0;
  // Housekeeping that may take some time. Not from the fault handler.
  virtual void tidy() noexcept = 0;
};

class Pager {
 public:
  explicit Pager(std::uint64_t limit_bytes);
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  // The process's pager. Its limit is base::memory_for_regions(), and fails as that does.
  static std::shared_ptr<Pager> of_process();
  // A pager with this limit of its own; 0: the process's.
  static std::shared_ptr<Pager> of_limit(std::uint64_t bytes);

  std::uint64_t limit_bytes() const noexcept;
  // Any context.
  void add_pages(std::int64_t pages) noexcept { used_.fetch_add(pages, std::memory_order_relaxed); }
  std::int64_t used_pages() const noexcept { return used_.load(std::memory_order_relaxed); }
  // By how many pages the limit is exceeded with `pages` more and with the headroom for unreported
  // pages; 0: it is not, or the count is in doubt.
  std::size_t lacking(std::size_t pages) const noexcept {
    return doubtful_.load(std::memory_order_relaxed) ? 0 : over(pages);
  }
  // The same, whether or not the count is in doubt.
  std::size_t over(std::size_t pages) const noexcept {
    const std::int64_t spare = spare_.load(std::memory_order_relaxed);
    const std::int64_t over =
        used_pages() + static_cast<std::int64_t>(pages) + spare - limit_pages_;
    return over > 0 ? static_cast<std::size_t>(over) : 0;
  }

  // A region could free fewer pages than requested. The count may be wrong (a page of zeros counts
  // before it is written), so no thread tries again before all regions have counted again.
  void doubt() noexcept {
    if (doubtful_.exchange(true, std::memory_order_relaxed)) return;
    // A thread that woke itself would never pause, and no region could join or leave.
    if (!balancing_.load(std::memory_order_relaxed)) wake();
  }

  bool is_doubtful() const noexcept { return doubtful_.load(std::memory_order_relaxed); }
  // How often the thread has balanced all regions.
  std::uint32_t rounds() const noexcept { return rounds_.load(std::memory_order_relaxed); }

  // Counts memory that stays until its region closes: at most half of the limit, in all regions
  // together. False: not enough is left, and nothing is counted.
  bool try_keep(std::uint64_t bytes) noexcept;
  void end_keep(std::uint64_t bytes) noexcept;

  // `bytes` is the region's size; grown() adds to it. The thread runs once the regions, each held
  // twice, could fill half of the limit. REQUIRES: the region has not joined.
  void join(Pageable& region, std::uint64_t bytes);
  void grown(std::uint64_t bytes);
  void shrunk(std::uint64_t bytes) noexcept;
  // Returns when the thread no longer uses the region. REQUIRES: joined.
  void leave(Pageable& region, std::uint64_t bytes) noexcept;

 private:
  void run(std::uint64_t life);
  void wake() noexcept;
  void pause(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds most);
  void count(std::vector<Pageable*>& regions);
  void keep_spare(std::int64_t found) noexcept;
  void balance(std::vector<Pageable*>& regions);
  void start_if_needed();

  const std::int64_t limit_pages_;
  std::atomic<std::int64_t> used_{0};
  std::atomic<std::uint64_t> kept_bytes_{0};
  // Headroom for unreported pages: as many as the last counts have found.
  std::atomic<std::int64_t> spare_{0};
  std::atomic<bool> doubtful_{false};
  std::atomic<std::uint32_t> rounds_{0};
  std::atomic<bool> balancing_{false};  // the thread is in balance(), and counts again within 2 ms
  int wake_ = -1;                       // eventfd(2): the fault handler may write to it
  std::mutex mutex_;                    // guards the members below
  std::vector<Pageable*> regions_;
  std::uint64_t region_bytes_ = 0;
  std::uint64_t life_ = 0;  // counts threads: one of an earlier life ends
  std::thread thread_;
};

}  // namespace vellum::region
