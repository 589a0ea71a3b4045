// Planted faults: skipped syncs, of this program and of its libraries. The program defines
// fdatasync() and fsync() itself, and its calls pass through here.
#pragma once

#include <functional>
#include <string>

namespace vellum::power {

// While it lives, a sync of a file or directory whose path `skips` accepts does nothing.
class SkippedSyncs {
 public:
  explicit SkippedSyncs(std::function<bool(const std::string& path)> skips);
  ~SkippedSyncs();
  SkippedSyncs(const SkippedSyncs&) = delete;
  SkippedSyncs& operator=(const SkippedSyncs&) = delete;
  static std::size_t count();  // skipped syncs of the current or the last instance
};

}  // namespace vellum::power
