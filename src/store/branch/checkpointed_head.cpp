#include "store/branch/checkpointed_head.hpp"

#include <cassert>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "store/branch/branch_writer.hpp"
#include "store/branch/page_copy.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/page_map/diff.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {
namespace {

// Writes what differs from the head of the staging branch as one commit, to its packs.
format::Version checkpoint_commits(StoreDirectory& store, BranchWriter& writer,
                                   const ResolvedVersion& from) {
  assert(!from.commits.empty());
  const auto now = PageSource::open(store, from.version, from.commits, from.label);
  ResolvedVersion staged = from;
  staged.version = writer.head();
  staged.commits.clear();
  const auto before = PageSource::open(store, staged.version, {}, from.label);
  const auto pages = pages_that_may_differ(*before, staged, *now, from);
  auto commit = writer.begin();
  add_pages(*commit, writer.encoding(), *now, before.get(), pages);
  commit->finish(from.head_info(), true);
  return writer.head();
}

// gc reads the branches, then the snapshots, and then the pins. It would miss a version whose pin is
// released as soon as its name is there; one on a staging branch it finds. REQUIRES: the version is
// still kept.
void publish(StoreDirectory& store, const NameLock& claim, const format::SnapshotRef& ref,
             bool is_staged) {
  std::optional<NamesShared> names;
  if (!is_staged) names.emplace(store);
  store.create_snapshot(claim, ref);
}

}  // namespace

StagingBranch& FollowedBranch::staging(StoreDirectory& store, const ResolvedVersion& head) {
  if (staging_ == nullptr || !(checkpoint_ == head.version)) {
    staging_.reset();
    staging_ = StagingBranch::kept(store, head.version, head.encoding);
    StagingBranch::remove_kept(store, head.version.branch_id, head.version);
    checkpoint_ = head.version;
  }
  return *staging_;
}

void FollowedBranch::rest(StoreDirectory& store, const ResolvedVersion& head) {
  assert(head.commits.empty());
  try {
    if (staging_ != nullptr) {
      staging(store, head);
    } else {
      StagingBranch::move_kept(store, head.version, head.encoding);
      StagingBranch::remove_kept(store, head.version.branch_id, head.version);
    }
  } catch (const Error&) {  // it needs space on the disk, and this head does not
    staging_.reset();
    StagingBranch::remove_kept(store, head.version.branch_id, {});
  }
}

void FollowedBranch::end() {
  if (staging_ != nullptr) staging_->remove();
  staging_.reset();
}

CheckpointedHead::CheckpointedHead(StoreDirectory& store, const std::string& branch,
                                   FollowedBranch* followed)
    : kept_(resolve_kept(store, branch)), version_(kept_.version.version) {
  const ResolvedVersion& from = kept_.version;
  if (from.commits.empty()) {
    if (followed != nullptr) followed->rest(store, from);
    return;
  }
  if (followed == nullptr) staging_.emplace(store, from.version, from.encoding);
  StagingBranch& staging = followed == nullptr ? *staging_ : followed->staging(store, from);
  try {
    version_ = checkpoint_commits(store, staging.writer(), from);
  } catch (...) {
    if (followed != nullptr) followed->end();  // its writer accepts nothing more
    throw;
  }
  version_.sequence = from.head_sequence();
}

void name_version(StoreDirectory& store, const NameLock& claim, const std::string& branch,
                  const format::Version& version, const std::string& message, bool is_staged) {
  format::SnapshotRef ref;
  ref.name = claim.name();
  ref.branch = branch;
  ref.created_ns = base::wall_clock_ns();
  ref.version = version;
  if (!message.empty()) ref.version.message = message;
  if (signing_key_for(store, branch).empty()) return publish(store, claim, ref, is_staged);
  StagingBranch staging(store, version, std::nullopt);
  const format::Version facts = std::exchange(ref.version, staging.writer().head());
  ref.version.sequence = facts.sequence;
  ref.version.pages_changed = facts.pages_changed;
  ref.version.set_info(facts.info());
  staging.writer().sign(ref);
  publish(store, claim, ref, true);
}

void name_live_branch_for_now(StoreDirectory& store, const std::string& branch,
                              const NameLock& claim) {
  const CheckpointedHead head(store, branch);
  const NamesShared names(store);
  store.create_snapshot(claim, head.head().branch, head.version(), "");
}

void snapshot_live_branch(StoreDirectory& store, const std::string& branch, const NameLock& claim,
                          const std::string& message) {
  const CheckpointedHead head(store, branch);
  name_version(store, claim, head.head().branch, head.version(), message, head.is_staged());
}

}  // namespace vellum::store
