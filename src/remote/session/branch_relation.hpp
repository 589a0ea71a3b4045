// remote/session/branch_relation.hpp: whether a branch of a remote is newer or older than the local
// one.
//
// Heads do not record which version is based on which. But all pushes of one epoch of a branch are
// based on each other: only a store that drops another's commits begins a new epoch.
#pragma once

#include "remote/objects/head.hpp"
#include "remote/objects/remote_file.hpp"
#include "store/branch/changed_branch.hpp"

namespace vellum::remote {

// Whether the remote's branch is a push of this store (`me`), no later than the last push that it
// has noted, or, if it has noted none (`seen` is null), no later than the local head `here`. That
// happens if the remote was restored from an older copy, or has another name in this store.
bool is_own_earlier_push(const RemoteVersion& there, const WriteId& me, const SeenBranch* seen,
                         const store::SeenHead& here);

// What a push notes of a branch before it publishes it in place of `there` (null: the remote has
// none). If it is interrupted, and the remote is restored from any older copy, is_own_earlier_push()
// still knows each push that this store has finished. `is_known`: the store has seen, intended or
// pushed `there`. The new push itself does not count before it is finished: a copy of the store has
// the same writer, and may have pushed meanwhile.
SeenBranch noted_before_push(const RemoteVersion* there, const SeenBranch* seen, bool is_known);

// The remote's branch compared with the local head, which has not changed since `seen`.
enum class BranchRelation {
  newer,     // it is based on the local head
  older,     // the local head is based on it: the remote was restored from an older copy
  diverged,  // another store has dropped commits of the local head
};
BranchRelation relation_of(const RemoteVersion& there, const SeenBranch& seen,
                           const store::SeenHead& here);

// The store's next snapshots get orders above those of the head's snapshots.
void skip_orders_of(store::StoreDirectory& store, const Head& head);

}  // namespace vellum::remote
