// A workload through the public API that can be stopped anywhere: a list of steps, the state of the
// store after each of them, and a process that runs them until it is killed.
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
  medium_commit,  // stretches of words in some pages
  large_commit,   // whole pages, more than a journal half
  moved_commit,   // all content, shifted a little: records are based on others
  snapshot,
  rollback,
  reopen,
  grow,
  make_branch,    // at a snapshot
  commit_branch,  // by a writer of its own
  import_branch,  // a stream becomes a new branch, or an existing one's content
  remove_snapshot,
  read_version
};

// What the process is doing within a step.
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
  struct Step {
    KillStep what;
    std::uint64_t seed;  // of what it writes
    std::string name;    // of the branch or snapshot that it is about
    std::string other;   // make_branch: the snapshot it starts at
  };
  std::vector<Step> steps;
  std::vector<NamedContents> states;  // before each step, and after the last
  // Journals of any size have checkpoints in the background, and the process dies there.
  bool in_background = false;
};

// Everything that a store is for; all checkpoints are made by commits, snapshots and closes.
KillWorkload make_kill_workload(std::uint64_t seed);
// Mostly commits that the journal takes, so that threads make checkpoints beside them.
KillWorkload make_background_workload(std::uint64_t seed);

// In memory that the process shares with its parent.
struct KillBoard {
  std::atomic<std::size_t> started{0}, done{0};  // steps
  std::atomic<Activity> activity{Activity::creating};
  KillReport report;
};

inline constexpr std::uint64_t kKillRegionBytes = 100u * 4096;
RegionOptions kill_region_options(Engine engine);
StoreOptions kill_store_options();  // checkpoints and new packs all the time

// In a child process. Throws when a version that it reads is not what it was.
void run_kill_workload(const KillWorkload& workload, const std::string& path, Engine engine,
                       KillBoard& board);

}  // namespace vellum::crash
