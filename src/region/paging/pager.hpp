// region/paging/pager.hpp: keeps regions within the memory they may use.
//
// A pager has a limit and the regions that share it: those of a process share one, unless a region
// asks for a limit of its own. It counts the pages they hold (committed copies and private ones).
// Who brings pages in beyond the limit makes room first, in its own region; a thread of the pager's
// begins earlier, so that this is rare, and evens out between regions.
//
// First writes to pages that are there already make private copies, and the kernel tells nobody;
// nor of pages of zeros that are read, where these take memory. So the thread looks every 2 ms how
// much private memory the process has, which is one read, and asks regions for the other, and has
// them count when that has grown.
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
  // Gives back about so many pages; returns how many. Also from the fault handler.
  virtual std::size_t make_room(std::size_t pages) noexcept = 0;
  // Counts its pages and tells the pager (add_pages). Not from the fault handler.
  virtual void measure() noexcept = 0;
  // Pages in files of its own that have come since without anybody's doing. Not from the fault
  // handler.
  virtual std::int64_t untold_pages() const noexcept = 0;
  // Puts things in order that take a while. Not from the fault handler.
  virtual void tidy() noexcept = 0;
};

class Pager {
 public:
  explicit Pager(std::uint64_t limit_bytes);
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  // Three quarters of the memory that the process may have (its cgroup's limit, or the machine's),
  // less 64 MiB for what else the library needs, but at least half of it;
  // VELLUM_MEMORY_LIMIT=BYTES says otherwise.
  static std::shared_ptr<Pager> of_process();

  std::uint64_t limit_bytes() const noexcept;
  // Any context.
  void add_pages(std::int64_t pages) noexcept { used_.fetch_add(pages, std::memory_order_relaxed); }
  std::int64_t used_pages() const noexcept { return used_.load(std::memory_order_relaxed); }
  // How many pages too many there would be with so many more; 0: none.
  std::size_t lacking(std::size_t pages) const noexcept {
    if (doubtful_.load(std::memory_order_relaxed)) return 0;
    const std::int64_t over = used_pages() + static_cast<std::int64_t>(pages) - limit_pages_;
    return over > 0 ? static_cast<std::size_t>(over) : 0;
  }

  // A region did not find as many pages as it was asked for: what is counted may be wrong (a page
  // of zeros counts before it is written), so nobody tries again before all have been counted anew.
  void doubt() noexcept {
    if (doubtful_.exchange(true, std::memory_order_relaxed)) return;
    // The thread that waked itself would never pause, and let nobody join or leave.
    if (!balancing_.load(std::memory_order_relaxed)) wake();
  }

  bool is_doubtful() const noexcept { return doubtful_.load(std::memory_order_relaxed); }

  // `bytes`: how large the region is; more when it grows. The thread runs once the regions together
  // might come near the limit.
  void join(Pageable& region, std::uint64_t bytes);
  void grown(std::uint64_t bytes);
  void shrunk(std::uint64_t bytes) noexcept;
  // Returns when the thread does not use the region any more.
  void leave(Pageable& region, std::uint64_t bytes) noexcept;

 private:
  static std::uint64_t limit_of_process();
  void run(std::uint64_t life);
  void wake() noexcept;
  void pause(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds most);
  void balance(std::vector<Pageable*>& regions);
  void start_if_needed();

  const std::int64_t limit_pages_;
  std::atomic<std::int64_t> used_{0};
  std::atomic<bool> doubtful_{false};
  std::atomic<bool> balancing_{false};  // the thread is in balance(), and counts again within 2 ms
  int wake_ = -1;                       // eventfd(2): the fault handler may write to it
  std::mutex mutex_;                    // of what follows
  std::vector<Pageable*> regions_;
  std::uint64_t region_bytes_ = 0;
  std::uint64_t life_ = 0;  // counts threads: one of an earlier life ends
  std::thread thread_;
};

}  // namespace vellum::region
