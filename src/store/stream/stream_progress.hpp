// store/stream/stream_progress.hpp: how far a stream has come. It only grows.
#pragma once

#include <cstdint>
#include <vellum/report.hpp>

namespace vellum::store {

// REQUIRES: `tell` outlives it.
class StreamProgress {
 public:
  explicit StreamProgress(const ProgressFn& tell) : tell_(tell) {}

  void reach(std::uint64_t done_bytes, std::uint64_t total_bytes) {
    if (!tell_ || done_bytes <= told_bytes_) return;
    told_bytes_ = done_bytes;
    tell_({done_bytes, total_bytes, "bytes"});
  }

 private:
  const ProgressFn& tell_;
  std::uint64_t told_bytes_ = 0;
};

}  // namespace vellum::store
