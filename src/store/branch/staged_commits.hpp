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
#include "store/catalog/store_directory.hpp"
#include "store/page_map/page_writes.hpp"

namespace vellum::store {

struct StagedCommits {
  // The head of the staging branch. gc keeps its records as long as the pin lives.
  KeptVersion head;
  std::vector<PageWrites> rest;    // what the branch's head has besides
  std::uint64_t staged_pages = 0;  // written by commits, and not in `rest`

  // Replaces the runs of the last checkpoint in `version` by those of the staged head, and counts the
  // staged pages and bytes.
  void move_to(format::Version& version) const;
};

// Those of the branch up to the commit `sequence`. `journal` is the branch's. Nullopt: no push has
// staged commits since its last checkpoint, or they cannot be read. REQUIRES: the journal starts no
// epoch during the call.
std::optional<StagedCommits> find_staged_commits(StoreDirectory& store, const base::File& journal,
                                                 std::uint64_t sequence,
                                                 const format::Encoding& encoding,
                                                 const std::string& label);

}  // namespace vellum::store
