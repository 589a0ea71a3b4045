// store/branch/background_checkpoint.hpp: a checkpoint that is written beside further commits.
//
// When half of a journal half is full, a thread composes what its commits come to, and writes and
// syncs the packs. The journal's other half then starts with the version that this makes, followed
// by the commits made meanwhile. The next commit joins them: one write and one sync make it durable
// and publish the checkpoint.
//
// If the half is full before the thread is done, a commit waits for it. So that no commit waits for
// all of it, commits that fill the half faster than the last checkpoint went wait a little each.
// What is not yet in packs is therefore bounded by one half of the journal, on disk and in memory.
//
// What the thread cannot do changes nothing. The journal holds all of these commits, and the commit
// that finds it full makes an ordinary checkpoint, and reports what is wrong. A sync that fails
// poisons the branch, as anywhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format/version.hpp"
#include "store/catalog/lock/version_pin.hpp"

namespace vellum::store {

struct BackgroundCheckpoint {
  struct Policy {
    // The smallest half that is worth a thread.
    std::uint32_t least_half_bytes = 256u << 10;
    bool in_call = false;  // for tests: no thread; the commit itself writes, at the same place
  };
  // For tests, in a process without open branches: the policy of all writers from here on.
  static void set_policy(const Policy& policy);
  static const Policy& policy() noexcept;

  // The head when it began; then, with the runs that were written, the base of the next epoch.
  format::Version version;
  std::size_t pieces = 0;        // how many of the epoch it covers: the oldest
  std::uint64_t raw_bytes = 0;   // of these
  std::uint64_t used_bytes = 0;  // of the half, when it began
  std::chrono::steady_clock::time_point began;
  std::chrono::nanoseconds took{};
  // Payloads of the commits since, oldest first.
  std::vector<std::vector<std::byte>> commits;
  std::string failure;              // empty: none
  std::optional<GcShared> gc_lock;  // while it is published, if records stand on others
};

}  // namespace vellum::store
