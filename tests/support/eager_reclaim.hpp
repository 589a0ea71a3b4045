// Regions free private copies immediately, however few they are.
#pragma once

#include <chrono>
#include <limits>

#include "memory/paged/reclaim_policy.hpp"

namespace vellum::test {

// While it lives. No region is open when it begins and when it ends.
class EagerReclaim {
 public:
  EagerReclaim() noexcept {
    region::ReclaimPolicy policy;
    policy.between_passes = policy.quiet = std::chrono::milliseconds(1);
    policy.few_pages = 0;
    policy.share_of_base_copies = std::numeric_limits<std::int64_t>::max();
    policy.share_of_limit = std::numeric_limits<std::uint64_t>::max();
    region::ReclaimPolicy::set(policy);
  }
  ~EagerReclaim() { region::ReclaimPolicy::set({}); }
  EagerReclaim(const EagerReclaim&) = delete;
  EagerReclaim& operator=(const EagerReclaim&) = delete;
};

}  // namespace vellum::test
