// Environment settings for the files of a program that does not use Vellum.
#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/fail.hpp"
#include "interfaces/atomic_file/mapped_files.hpp"

namespace vellum::atomic_file {

Tracker tracker_from_environment(Tracker otherwise) {
  const char* value = std::getenv("VELLUM_ATOMIC_TRACKER");
  if (value == nullptr || *value == '\0') return otherwise;
  const std::string_view name(value);
  if (name == "pages") return Tracker::pages;
  if (name == "cards") return Tracker::cards;
  if (name == "cards_and_pages") return Tracker::cards_and_pages;
  fail(Errc::invalid_argument,
       "VELLUM_ATOMIC_TRACKER is '{}': it must be pages, cards or cards_and_pages", name);
}

bool chosen_by_environment(const std::string& path) {
  const char* patterns = std::getenv("VELLUM_ATOMIC_FILES");
  if (patterns == nullptr || *patterns == '\0' || path.empty()) return false;
  const std::string name = path.substr(path.rfind('/') + 1);
  for (std::string_view left(patterns); !left.empty();) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const std::string pattern(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
    const bool whole = pattern.find('/') != std::string::npos;
    if (!pattern.empty() && fnmatch(pattern.c_str(), (whole ? path : name).c_str(), 0) == 0)
      return true;
  }
  return false;
}

}  // namespace vellum::atomic_file
