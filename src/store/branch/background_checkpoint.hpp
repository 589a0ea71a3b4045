// store/branch/background_checkpoint.hpp: a checkpoint that is written concurrently with commits.
//
// When half of a journal half is full, a thread composes the net effect of its commits, and writes
// and syncs the packs. The journal's other half then starts with the resulting version, followed by
// the commits since. The next commit joins them: one write and one sync make it durable and publish
// the checkpoint.
//
// If the half is full before the thread has finished, a commit waits for it. To spread this wait,
// each commit that fills the half faster than the last checkpoint took waits a little. One journal
// half therefore bounds the data that is not yet in packs, on disk and in memory.
//
// A failure of the thread changes nothing. The journal holds all of these commits. The commit that
// finds it full makes an ordinary checkpoint and reports the error. A failed sync poisons the branch,
// as always.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format/journal.hpp"
#include "format/version.hpp"
#include "store/branch/staged_commits.hpp"
#include "store/catalog/lock/version_pin.hpp"

namespace vellum::store {

struct BackgroundCheckpoint {
  // The head at the start; then, with the runs that were written, the base of the next epoch.
  format::Version version;
  std::size_t pieces = 0;        // number of the epoch's oldest pieces that it covers
  std::uint64_t raw_bytes = 0;   // of these pieces
  std::uint64_t used_bytes = 0;  // of the half, at the start
  std::chrono::steady_clock::time_point began;
  std::chrono::nanoseconds took{};
  std::vector<format::FrameBuffer> commits;  // since the start, oldest first
  std::string failure;                       // empty: none
  std::optional<StagedCommits> staged;       // from which it continues
  // While it is published, if its records have base pages, or it continues from staged commits.
  std::optional<GcShared> gc_lock;
};

}  // namespace vellum::store
