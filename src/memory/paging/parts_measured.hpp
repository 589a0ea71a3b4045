// memory/paging/parts_measured.hpp: whether it pays to bring in parts of chunks.
//
// Of the chunks that began with a part, it counts those that had to come in wholly and those that
// left before. Any context, any number of threads; an update that another one overwrites costs
// nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace vellum::region {

class PartsMeasured {
 public:
  void note(bool completed) noexcept {
    (completed ? completed_ : left_).fetch_add(1, std::memory_order_relaxed);
    const std::uint32_t whole = completed_.load(std::memory_order_relaxed);
    const std::uint32_t part = left_.load(std::memory_order_relaxed);
    if (whole + part < kMaxChunks) return;
    completed_.store(whole / 2, std::memory_order_relaxed);
    left_.store(part / 2, std::memory_order_relaxed);
  }
  // Whether the next chunk should begin with a part. Where that does not pay, one of kProbe does,
  // to find out when it pays again.
  bool next() noexcept {
    if (completed_.load(std::memory_order_relaxed) <= left_.load(std::memory_order_relaxed))
      return true;
    return probes_.fetch_add(1, std::memory_order_relaxed) % kProbe == 0;
  }

  static constexpr std::uint32_t kProbe = 16;
  static constexpr std::uint32_t kMaxChunks = 256;  // older ones count half

 private:
  std::atomic<std::uint32_t> completed_{0}, left_{0}, probes_{0};
};

}  // namespace vellum::region
