// run/run/config.hpp: the settings that `vellum run` passes in the environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vellum::preload {

// Each holds one value, or several separated by newlines.
inline constexpr const char* kStoreVariable = "VELLUM_RUN_STORE";
inline constexpr const char* kFilesVariable = "VELLUM_RUN_FILES";        // paths, or patterns
inline constexpr const char* kBranchesVariable = "VELLUM_RUN_BRANCHES";  // one for each file
inline constexpr const char* kCopiesVariable =
    "VELLUM_RUN_COPIES";  // to read instead: see RunTarget
inline constexpr const char* kEveryVariable = "VELLUM_RUN_SNAPSHOT_EVERY";  // commits
inline constexpr const char* kNoGcVariable = "VELLUM_RUN_NO_GC";  // 1: background_gc is false

class WatchedFiles;

struct RunTarget {
  std::string path;  // as the kernel resolves it, or a pattern of such paths (run/run/pattern.hpp)
  std::string branch;  // in the store; empty for a pattern: see branch_of_path()
  // If not empty, the program reads this file instead, and companion files are private, too.
  std::string copy;
};

struct Config {
  std::string store;
  std::vector<RunTarget> targets;
  std::uint64_t snapshot_every = 0;  // 0: never
  bool background_gc = true;

  // The settings at process start; empty if there are none, or they are inconsistent.
  static Config from(const WatchedFiles& watch);
  // The number of the target that a real path belongs to; targets.size() if none.
  std::size_t target_for(const std::string& path) const;
  // The branch of that target; empty if the path belongs to none.
  std::string branch_for(const std::string& path) const;
};

bool is_pattern(const std::string& path);
// "+srv+db+data.mdb"; a hash follows if characters or length are not valid in a name.
std::string branch_of_path(const std::string& path);
// "main-00000012": the name of an automatic snapshot.
std::string snapshot_name(const std::string& branch, std::uint64_t sequence);

}  // namespace vellum::preload
