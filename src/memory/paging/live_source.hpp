// memory/paging/live_source.hpp: the source of committed page content while commits go on.
//
// A version's source never changes. Pages of a branch that are evicted after a commit must be
// refilled as of that commit, so a branch's source is replaced from time to time. Readers are fault
// handlers: they take no lock and only count themselves in (LiveSourceReader). replace() waits for
// the readers of the old source.
#pragma once

#include <atomic>
#include <cassert>
#include <memory>
#include <thread>
#include <utility>

#include "store/page_map/page_source.hpp"

namespace vellum::region {

class LiveSource {
 public:
  // Null: all zero.
  explicit LiveSource(std::shared_ptr<store::PageSource> source) {
    sources_[0] = std::move(source);
  }

  // Returns when no thread reads the old source. One caller at a time; never from the fault
  // handler.
  void replace(std::shared_ptr<store::PageSource> source) {
    const unsigned old = current_.load();
    sources_[1 - old] = std::move(source);
    current_.store(1 - old);
    while (readers_[old].load() != 0) std::this_thread::yield();
    sources_[old].reset();
  }
  // For callers outside the fault handler, where errors are thrown. REQUIRES: as for replace().
  const std::shared_ptr<store::PageSource>& shared() const noexcept {
    return sources_[current_.load()];
  }

 private:
  std::shared_ptr<store::PageSource> sources_[2];
  std::atomic<unsigned> current_{0};
  mutable std::atomic<unsigned> readers_[2] = {};

  friend class LiveSourceReader;
};

// Keeps the current source open while it lives. Any context.
class LiveSourceReader {
 public:
  explicit LiveSourceReader(const LiveSource& live) noexcept : live_(live) {
    for (;;) {
      at_ = live.current_.load();
      live.readers_[at_].fetch_add(1);
      // Counting in before the second load pairs with replace().
      if (live.current_.load() == at_) return;
      live.readers_[at_].fetch_sub(1);
    }
  }
  ~LiveSourceReader() { live_.readers_[at_].fetch_sub(1); }
  LiveSourceReader(const LiveSourceReader&) = delete;
  LiveSourceReader& operator=(const LiveSourceReader&) = delete;
  // Null: all zero.
  const store::PageSource* get() const noexcept { return live_.sources_[at_].get(); }
  // REQUIRES: not null.
  const store::PageSource* operator->() const noexcept {
    assert(get() != nullptr);
    return get();
  }

 private:
  const LiveSource& live_;
  unsigned at_ = 0;
};

}  // namespace vellum::region
