#include "remote/session/branch_relation.hpp"

#include <algorithm>
#include <cassert>

#include "store/catalog/snapshots/snapshot_order.hpp"

namespace vellum::remote {

bool is_own_earlier_push(const RemoteVersion& there, const WriteId& me, const SeenBranch* seen,
                         const store::SeenHead& here) {
  assert(there.is_branch);
  const format::Version& version = there.ref.version;
  const std::uint64_t sequence = seen == nullptr ? here.sequence : seen->sequence;
  const std::int64_t time_ns = seen == nullptr ? here.time_ns : seen->time_ns;
  const bool is_same_epoch = seen == nullptr || seen->epoch == 0 || seen->epoch == there.epoch;
  return there.writer == me && is_same_epoch &&
         (version.sequence < sequence ||
          (version.sequence == sequence && version.time_ns == time_ns));
}

SeenBranch noted_before_push(const RemoteVersion* there, const SeenBranch* seen, bool is_known) {
  SeenBranch out;
  if (seen != nullptr && (there == nullptr || is_known)) out = *seen;
  if (there == nullptr) return out;
  const bool is_interrupted = seen != nullptr && there->write_id == seen->intended;
  if (seen != nullptr && is_known && !is_interrupted) return out;
  out.seen = there->write_id;
  out.branch_id = 0;  // the local head of that push is not known: the branch counts as changed
  out.sequence = there->ref.version.sequence;
  out.time_ns = there->ref.version.time_ns;
  return out;
}

BranchRelation relation_of(const RemoteVersion& there, const SeenBranch& seen,
                           const store::SeenHead& here) {
  assert(there.is_branch);
  const bool is_later = there.ref.version.sequence > here.sequence;
  if (seen.epoch == 0 || there.epoch == seen.epoch) {
    return is_later ? BranchRelation::newer : BranchRelation::older;
  }
  return there.epoch < seen.epoch ? BranchRelation::older : BranchRelation::diverged;
}

void skip_orders_of(store::StoreDirectory& store, const Head& head) {
  std::uint64_t last = 0;
  for (const RemoteVersion& name : head.versions) last = std::max(last, name.ref.order);
  if (last != 0) store::pass_snapshot_order(store, last);
}

}  // namespace vellum::remote
