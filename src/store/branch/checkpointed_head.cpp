#include "store/branch/checkpointed_head.hpp"

#include <cassert>

#include "store/branch/branch_writer.hpp"
#include "store/branch/page_copy.hpp"
#include "store/page_map/diff.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {
namespace {

// Writes the journal's commits as one commit, to the packs of the staging branch.
format::Version checkpoint_commits(StoreDirectory& store, BranchWriter& writer,
                                   const ResolvedVersion& from) {
  assert(!from.commits.empty());
  const auto now = PageSource::open(store, from.version, from.commits, from.label);
  ResolvedVersion checkpointed = from;
  checkpointed.commits.clear();
  const auto before = PageSource::open(store, checkpointed.version, {}, from.label);
  const auto pages = pages_that_may_differ(*before, checkpointed, *now, from);
  auto commit = writer.begin();
  add_pages(*commit, writer.encoding(), *now, before.get(), pages);
  commit->finish(from.head_info(), true);
  return writer.head();
}

}  // namespace

CheckpointedHead::CheckpointedHead(StoreDirectory& store, const std::string& branch)
    : kept_(resolve_kept(store, branch)), version_(kept_.version.version) {
  const ResolvedVersion& from = kept_.version;
  if (from.commits.empty()) return;
  staging_.emplace(store, from.version, from.encoding);
  version_ = checkpoint_commits(store, staging_->writer(), from);
  version_.sequence = from.head_sequence();
}

void snapshot_live_branch(StoreDirectory& store, const std::string& branch, const NameLock& claim,
                          const std::string& message) {
  const CheckpointedHead head(store, branch);
  store.create_snapshot(claim, branch, head.version(), message);
}

}  // namespace vellum::store
