#include "store/branch/rename_branch.hpp"

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "store/branch/checkpointed_head.hpp"
#include "store/catalog/lock/version_pin.hpp"

namespace vellum::store {

// The journal stays locked: no commit comes between the new name and the end of the old one. Of the
// two names, one is locked at a time.
void rename_branch(StoreDirectory& store, const std::string& from, const std::string& to) {
  if (!has_branch(store, from)) fail(Errc::not_found, "no branch '{}' in {}", from, store.path());
  store.settle_name(from);
  const auto journal = try_lock_branch(store, from);
  if (journal == nullptr) {
    fail(Errc::busy, "branch '{}' of {} has a writer{}: close it", from, store.path(),
         base::lock_holders(store.journal_path(from)));
  }
  {
    const NameLock claim = claim_name(store, to);
    const CheckpointedHead head(store, from);
    // A gc has read all names before the new one is there, or finds it.
    const NamesShared names(store);
    store.create_branch_at(claim, head.version(), head.head().version.parent, head.head().encoding);
  }
  const NameLock lock = lock_name(store, from);
  store.drop_branch(from, *journal);
}

}  // namespace vellum::store
