// memory/paging/partial_fill_policy.hpp: whether filling parts of chunks saves work.
//
// It compares two counts of the chunks that were partially filled first: those that had to be
// completed, and those that were evicted before. Any context, any number of threads; a lost update
// does no harm.
#pragma once

#include <atomic>
#include <cstdint>

namespace vellum::region {

class PartialFillPolicy {
 public:
  // A partially filled chunk had to be completed.
  void note_completed() noexcept { note(completed_); }
  // A partially filled chunk was evicted as it was.
  void note_evicted() noexcept { note(evicted_); }

  // Decides whether the next chunk is partially filled. While that does not pay, one chunk of
  // kProbe is, to measure whether it pays again.
  bool choose_partial() noexcept {
    if (pays()) return true;
    return probes_.fetch_add(1, std::memory_order_relaxed) % kProbe == 0;
  }
  // Whether at most half of the chunks had to be completed.
  bool pays() const noexcept {
    return completed_.load(std::memory_order_relaxed) <= evicted_.load(std::memory_order_relaxed);
  }

  static constexpr std::uint32_t kProbe = 16;
  static constexpr std::uint32_t kMaxChunks = 256;  // older ones count half

 private:
  void note(std::atomic<std::uint32_t>& count) noexcept {
    count.fetch_add(1, std::memory_order_relaxed);
    const std::uint32_t completed = completed_.load(std::memory_order_relaxed);
    const std::uint32_t evicted = evicted_.load(std::memory_order_relaxed);
    if (completed + evicted < kMaxChunks) return;
    completed_.store(completed / 2, std::memory_order_relaxed);
    evicted_.store(evicted / 2, std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t> completed_{0}, evicted_{0}, probes_{0};
};

}  // namespace vellum::region
