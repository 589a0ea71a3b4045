// store/stream/stream_progress.hpp: reports the progress of a stream, which only grows.
#pragma once

#include <cstdint>
#include <vellum/report.hpp>

namespace vellum::store {

// REQUIRES: `report` outlives it.
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
