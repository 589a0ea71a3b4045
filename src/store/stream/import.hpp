// store/stream/import.hpp: imports a stream into a branch, in one commit.
//
// Threads compare each range of pages with the branch's head and encode the differing pages. Their
// blocks are written to the pack at once. Memory holds a few ranges, and a bounded number of deltas
// of pages that change little. The branch does not change before the commit at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vellum/report.hpp>

#include "store/branch/branch_writer.hpp"
#include "store/stream/content.hpp"
#include "store/stream/stream_options.hpp"

namespace vellum::store {

struct ImportOptions {
  std::string message = {};
  std::uint64_t base_address = 0;
  bool checkpoint = false;  // as for BranchWriter::Commit::finish()
  // Also publishes the commit as this snapshot. It then commits even if nothing has changed.
  const NameLock* snapshot = nullptr;
  StreamOptions stream = {};
};

struct ImportReport {
  std::uint64_t pages_changed = 0;
  bool committed = false;        // false: content and sizes are unchanged
  CommitCost cost;               // of the commit
  std::uint64_t peak_bytes = 0;  // the largest size of the content in memory, read or encoded
};

// Imports the content into the branch of `writer`. Throws the errors of the content, the store and
// `progress`; the branch is then unchanged. REQUIRES: the writer has just been opened.
ImportReport import_content(BranchWriter& writer, Content& content, const ImportOptions& options,
                            const ProgressFn& progress);

}  // namespace vellum::store
