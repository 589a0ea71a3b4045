// store/stream/stream_options.hpp: the threads, memory and progress of an import or export.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vellum/report.hpp>

namespace vellum::store {

struct StreamOptions {
  static constexpr std::size_t kMaxThreads = 8;  // memory grows with them, and only one writes

  std::size_t threads =
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMaxThreads);
  std::size_t piece_bytes = std::size_t{4} << 20;  // a multiple of a page

  // 0: the caller does all work, as for a stream of one range.
  std::size_t threads_for(std::uint64_t bytes) const noexcept {
    return bytes <= piece_bytes ? 0 : threads;
  }
  // Ranges in memory: one is read, one is written, the threads work on the others.
  static std::size_t slots_for(std::size_t threads) noexcept { return threads + 2; }
};

// Reports the progress of a stream, which only grows. REQUIRES: `report` outlives it.
class StreamProgress {
 public:
  explicit StreamProgress(const ProgressFn& report) : report_(report) {}

  void reach(std::uint64_t done_bytes, std::uint64_t total_bytes) {
    if (!report_ || done_bytes <= reported_bytes_) return;
    reported_bytes_ = done_bytes;
    report_({done_bytes, total_bytes, "bytes"});
  }

 private:
  const ProgressFn& report_;
  std::uint64_t reported_bytes_ = 0;
};

}  // namespace vellum::store
