// A workload through the public API that can stop anywhere: a list of steps, the state of the store
// after each step, and a process that runs the steps until it is killed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include <vellum/store.hpp>

#include "crash/syscall_seam_lib.hpp"

namespace vellum::crash {

enum class KillStep {
  create_store,
  create_region,
  small_commit,   // a few words
  medium_commit,  // ranges of words in some pages
  large_commit,   // whole pages, more than a journal half
  moved_commit,   // all content, shifted a little: records are based on other records
  snapshot,
  rollback,
  reopen,
  grow,
  make_branch,    // at a snapshot
  commit_branch,  // by a writer of its own
  import_branch,  // a stream becomes a new branch, or the new content of an existing branch
  remove_snapshot,
  read_version
};

// The activity of the process within a step.
enum class Activity : int {
  creating,
  touching,
  committing,
  snapshot,
  opening,
  closing,
  reading,
  names,
  importing
};
inline constexpr std::size_t kActivities = 9;
const char* activity_name(Activity activity);

using Bytes = std::vector<std::byte>;
// Branches and snapshots by name, with their content.
using NamedContents = std::map<std::string, std::shared_ptr<const Bytes>>;

struct KillWorkload {
  struct WorkloadStep {
    KillStep what;
    std::uint64_t seed;  // of its stores
    std::string name;    // its branch or snapshot
    std::string other;   // make_branch: the snapshot where the branch starts
  };
  std::vector<WorkloadStep> steps;
  std::vector<NamedContents> states;  // before each step, and after the last
  // The journal has any size, checkpoints run in the background, and the process is killed in them.
  bool in_background = false;
};

// All operations of a store; commits, snapshots and closes run all checkpoints.
KillWorkload make_kill_workload(std::uint64_t seed);
// Mostly commits that fit into the journal, and concurrent checkpoints in threads.
KillWorkload make_background_workload(std::uint64_t seed);

// In memory that the process shares with its parent.
struct KillBoard {
  std::atomic<std::size_t> started{0}, done{0};  // steps
  std::atomic<Activity> activity{Activity::creating};
  KillReport report;
};

inline constexpr std::uint64_t kKillRegionBytes = 100u * 4096;
RegionOptions kill_region_options(Engine engine);
StoreOptions kill_store_options();  // frequent checkpoints and new packs

// In a child process. Throws when a version that it reads has changed.
void run_kill_workload(const KillWorkload& workload, const std::string& path, Engine engine,
                       KillBoard& board);

}  // namespace vellum::crash
