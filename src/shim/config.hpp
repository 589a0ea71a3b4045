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

struct Target {
  std::string path;    // real, as the kernel gives it; or a pattern of such (fnmatch(3))
  std::string branch;  // of the store; empty for a pattern: branch_of_path()
  // Not empty: the program reads this file instead, and what lies beside it is private, too.
  std::string copy;
};

struct Config {
  std::string store;
  std::vector<Target> targets;
  std::uint64_t snapshot_every = 0;  // 0: never

  // Empty where the environment says nothing, or nothing credible.
  static Config from_environment();
  // The branch of a file, by its real path; empty: it is none of the targets.
  std::string branch_for(const std::string& path) const;
};

bool is_pattern(const std::string& path);
// "+srv+db+data.mdb": what can be in no name is replaced, and told apart by a hash behind.
std::string branch_of_path(const std::string& path);
// The path back; empty where the branch's name does not say it.
std::string path_of_branch(const std::string& branch);
// "main-00000012": of snapshots that nobody has named.
std::string snapshot_name(const std::string& branch, std::uint64_t sequence);

}  // namespace vellum::shim
