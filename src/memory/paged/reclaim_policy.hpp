// memory/paged/reclaim_policy.hpp: when private copies go back (paged_reclaim.cpp).
#pragma once

#include <chrono>
#include <cstdint>

namespace vellum::region {

struct ReclaimPolicy {
  std::chrono::milliseconds between_passes{20};
  std::chrono::milliseconds quiet{500};  // so long after the last commit, all chunks rest
  // Private pages are too many when they exceed both; a pass ends when they are half as many.
  std::int64_t few_pages = 1024;
  std::int64_t share_of_base_copies = 16;  // a sixteenth of them
  // A region that takes less than this share of the memory limit keeps everything.
  std::uint64_t share_of_limit = 16;

  // For tests, in a process without open regions.
  static void set(const ReclaimPolicy& policy) noexcept;
};

}  // namespace vellum::region
