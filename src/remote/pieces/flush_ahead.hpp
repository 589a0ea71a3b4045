// remote/pieces/flush_ahead.hpp: the medium begins with a file's bytes while others still come, so that the sync at
// the end waits for less.
#pragma once

#include <cstdint>

#include "base/files/file.hpp"

namespace vellum::remote {

class FlushAhead {
 public:
  // Bytes up to `end_bytes` were written just now.
  void wrote(base::File& file, std::uint64_t end_bytes, std::uint64_t fresh_bytes) noexcept {
    unflushed_bytes_ += fresh_bytes;
    if (unflushed_bytes_ < kEachBytes) return;
    file.begin_flush(0, end_bytes);
    unflushed_bytes_ = 0;
  }

 private:
  static constexpr std::uint64_t kEachBytes = 8u << 20;
  std::uint64_t unflushed_bytes_ = 0;
};

}  // namespace vellum::remote
