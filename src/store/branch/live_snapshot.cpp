#include "store/branch/live_snapshot.hpp"

#include <optional>

#include "store/branch/branch_writer.hpp"
#include "store/branch/page_copy.hpp"
#include "store/branch/staging_branch.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/page_map/diff.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {
namespace {

// Writes the journal's commits as one commit that goes to packs.
format::Version checkpoint_aside(StoreDirectory& store, StagingBranch& aside,
                                 const ResolvedVersion& from) {
  const auto now = PageSource::open(store, from.version, from.commits, from.label);
  ResolvedVersion checkpointed = from;
  checkpointed.commits.clear();
  const auto before = PageSource::open(store, checkpointed.version, {}, from.label);
  const auto pages = pages_that_may_differ(*before, checkpointed, *now, from);
  BranchWriter& writer = aside.writer();
  auto commit = writer.begin();
  add_pages(*commit, writer.encoding(), *now, before.get(), pages);
  const format::CommitBody& last = from.commits.back();
  commit->finish(
      {last.time_ns, now->region_bytes(), last.base_address, last.message, now->file_bytes()},
      true);
  return writer.head();
}

}  // namespace

HeadInPacks::HeadInPacks(StoreDirectory& store, const std::string& branch)
    : kept_(resolve_kept(store, branch)), version_(kept_.version.version) {
  const ResolvedVersion& from = kept_.version;
  if (from.commits.empty()) return;
  aside_.emplace(store, from.version, from.encoding);
  version_ = checkpoint_aside(store, *aside_, from);
  version_.sequence = from.version.sequence + from.commits.size();
}

void snapshot_of_live(StoreDirectory& store, const std::string& branch, const NameLock& claim,
                      const std::string& message) {
  const HeadInPacks head(store, branch);
  store.create_snapshot(claim, branch, head.version(), message);
}

}  // namespace vellum::store
