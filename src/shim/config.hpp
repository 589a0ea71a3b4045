// shim/config.hpp: what `vellum run` tells the library, by the environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vellum::shim {

// One each, split by newlines where there are several.
inline constexpr const char* kStoreVariable = "VELLUM_RUN_STORE";
inline constexpr const char* kFilesVariable = "VELLUM_RUN_FILES";        // paths, or patterns
inline constexpr const char* kBranchesVariable = "VELLUM_RUN_BRANCHES";  // as many
inline constexpr const char* kCopiesVariable = "VELLUM_RUN_COPIES";  // instead, to read: see Target
inline constexpr const char* kEveryVariable = "VELLUM_RUN_SNAPSHOT_EVERY";  // commits
inline constexpr const char* kNoGcVariable = "VELLUM_RUN_NO_GC";  // 1: RegionOptions::background_gc

class Watch;

struct Target {
  std::string path;    // real, as the kernel gives it; or a pattern of such (shim/pattern.hpp)
  std::string branch;  // of the store; empty for a pattern: branch_of_path()
  // Not empty: the program reads this file instead, and what lies beside it is private, too.
  std::string copy;
};

struct Config {
  std::string store;
  std::vector<Target> targets;
  std::uint64_t snapshot_every = 0;  // 0: never
  bool background_gc = true;

  // What the environment said at the beginning; empty where that is nothing credible.
  static Config from(const Watch& watch);
  // Which of the targets a file is, by its real path; targets.size(): none.
  std::size_t target_for(const std::string& path) const;
  // Its branch; empty: it is none of the targets.
  std::string branch_for(const std::string& path) const;
};

bool is_pattern(const std::string& path);
// "+srv+db+data.mdb": what can be in no name is replaced, and told apart by a hash behind.
std::string branch_of_path(const std::string& path);
// "main-00000012": of snapshots that nobody has named.
std::string snapshot_name(const std::string& branch, std::uint64_t sequence);

}  // namespace vellum::shim
