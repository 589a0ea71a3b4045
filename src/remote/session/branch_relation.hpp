// remote/session/branch_relation.hpp: how a branch of a remote stands to what this store has of it.
// Heads do not say which version followed from which, but all pushes of one epoch of a branch
// follow from each other: only a store that drops what another has pushed begins a new epoch.
#pragma once

#include "remote/objects/head.hpp"
#include "remote/objects/remote_file.hpp"
#include "store/branch/adopt_version.hpp"

namespace vellum::remote {

// Whether the remote's branch is a push of this store (`me`), no later than the last one of which
// it knows; where it knows of none (`seen` is null), no later than the local head `here`. So it is
// where the remote was restored from an older copy, or is known under another name.
bool is_own_earlier_push(const RemoteVersion& there, const WriteId& me, const SeenBranch* seen,
                         const store::SeenHead& here);

// How the remote's branch stands to the local head, which has not changed since `seen`.
enum class BranchRelation {
  newer,     // it follows from what is here
  older,     // what is here follows from it: the remote was restored from an older copy
  diverged,  // another store has dropped what is here
};
BranchRelation relation_of(const RemoteVersion& there, const SeenBranch& seen,
                           const store::SeenHead& here);

// Snapshots that the store makes from now on are newer than all that the head names.
void skip_orders_of(store::StoreDirectory& store, const Head& head);

}  // namespace vellum::remote
