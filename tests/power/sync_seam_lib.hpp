// Planted faults: syncs that are skipped, of this program and of the libraries in it. The program
// defines fdatasync() and fsync() itself, so its calls come by here.
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
  static std::size_t count();  // skipped by the one that lives, or lived last
};

}  // namespace vellum::power
