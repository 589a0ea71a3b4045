// store/branch/staged_commits.hpp: commits of a branch that a push has already written to packs.
//
// A push of a branch in use writes the journal's commits to the packs of a staging branch, and sends
// these records (store/branch/checkpointed_head.hpp). If the branch's checkpoint wrote the same pages
// to its own packs, they would be stored and sent twice. The checkpoint therefore continues from the
// head of the staging branch: its runs become older runs of the checkpoint, which writes only what
// differs from that head.
//
// Nothing is assumed about the staged content: all pages that the two page maps do not share are
// compared, and thereby read and checked. A staging branch only saves work. Without one, or with one
// that cannot be read, the checkpoint writes all of the journal's commits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "format/wire/superblock.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/page_map/page_writes.hpp"

namespace vellum::store {

class JournalWriter;

struct StagedCommits {
  // The head of the staging branch. Its records are kept by the pin, and later by the name of the
  // branch. A gc reads the names of branches before the pins, so it must not run in between.
  KeptVersion head;
  std::vector<PageWrites> rest;    // what the branch's head has besides
  std::uint64_t staged_pages = 0;  // written by commits, and not in `rest`
  std::optional<GcShared> gc_lock;

  // Replaces the runs of the last checkpoint in `version` by those of the staged head, and counts the
  // staged pages and bytes.
  void move_to(format::Version& version) const;
};

// Those of the branch up to the commit `sequence`. `journal` is the branch's. Nullopt: no push has
// staged commits since its last checkpoint, they cannot be read, packs of the store are remote, or a
// gc runs. Waits for none. REQUIRES: the journal starts no epoch during the call. The caller holds
// `gc_lock` when it publishes a version with the staged runs; what it writes before, the pin keeps.
std::optional<StagedCommits> find_staged_commits(StoreDirectory& store,
                                                 const JournalWriter& journal,
                                                 std::uint64_t sequence,
                                                 const format::Encoding& encoding,
                                                 const std::string& label);

}  // namespace vellum::store
