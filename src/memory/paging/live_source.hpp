// memory/paging/live_source.hpp: the source of committed page content while commits go on.
//
// A version's source never changes. A branch's pages that leave memory after a commit must come
// back as that commit left them, so a branch's source is replaced from time to time. Readers are
// fault handlers: they take no lock and only count themselves in. replace() waits for the readers
// of the old source.
#pragma once

#include <atomic>
#include <memory>

#include "store/page_map/page_source.hpp"

namespace vellum::region {

class LiveSource {
 public:
  // Null: all zero.
  explicit LiveSource(std::shared_ptr<store::PageSource> source) {
    sources_[0] = std::move(source);
  }

  class Use {
   public:
    explicit Use(const LiveSource& live) noexcept : live_(live) {
      for (;;) {
        at_ = live.current_.load();
        live.readers_[at_].fetch_add(1);
        // Counting in before looking again pairs with replace().
        if (live.current_.load() == at_) return;
        live.readers_[at_].fetch_sub(1);
      }
    }
    ~Use() { live_.readers_[at_].fetch_sub(1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    const store::PageSource* get() const noexcept { return live_.sources_[at_].get(); }
    const store::PageSource* operator->() const noexcept { return get(); }

   private:
    const LiveSource& live_;
    unsigned at_ = 0;
  };

  // Returns when nobody reads the old source. One caller at a time; never from the fault handler.
  void replace(std::shared_ptr<store::PageSource> source);
  // For use outside the fault handler, where errors are thrown. REQUIRES: as for replace().
  const std::shared_ptr<store::PageSource>& shared() const noexcept {
    return sources_[current_.load()];
  }

 private:
  std::shared_ptr<store::PageSource> sources_[2];
  std::atomic<unsigned> current_{0};
  mutable std::atomic<unsigned> readers_[2] = {};
};

}  // namespace vellum::region
