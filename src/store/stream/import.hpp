// store/stream/import.hpp: a branch gets the content of a stream, in one commit, as it passes.
//
// Threads compare each piece with the branch's head and encode what differs; its blocks go to the
// pack at once. Memory holds a few pieces, and the deltas of pages that change a little until there
// are many. Nothing of it counts before the commit at the end.
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
  // The commit is this snapshot, too; it is then made even if nothing has changed.
  const NameLock* snapshot = nullptr;
  StreamOptions stream = {};
};

struct ImportReport {
  std::uint64_t pages_changed = 0;
  bool committed = false;        // false: content and sizes are as they were
  CommitCost cost;               // of the commit
  std::uint64_t peak_bytes = 0;  // the most content in memory at once, read or encoded
};

// Gives the branch of `writer` the content. Throws what the content, the store and `progress` throw;
// the branch is as it was then. REQUIRES: the writer has just been opened.
ImportReport import_content(BranchWriter& writer, Content& content, const ImportOptions& options,
                            const ProgressFn& progress);

}  // namespace vellum::store
