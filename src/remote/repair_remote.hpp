// remote/repair_remote.hpp: restores lost and damaged objects of a remote from a store.
#pragma once

#include <memory>

#include "remote/upkeep.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// The versions that a damage affects and that the store has: a repair from it may mend the object.
// Snapshots are compared with those of `head`; of a branch the store may have newer commits.
std::vector<std::string> versions_to_mend_with(const store::StoreDirectory& store, const Head& head,
                                               const RemoteDamage& damage);

struct RemoteRepairReport {
  std::vector<RemoteDamage> found, left;
  std::uint64_t objects_uploaded = 0, bytes_uploaded = 0;
  std::vector<std::string> warnings;  // what a person should know, a sentence each
};

// Reads every byte of the remote at `url`, removes damaged objects, and uploads those that a
// version of the store needs again. Key slots of a remote encrypted by objects that are lost, or do
// not open, are replaced by the store's copy. `objects` replaces the engine of the URL unless it is null.
// Errc::invalid_argument: the remote has the versions of another store.
RemoteRepairReport repair_remote(store::StoreDirectory& store, const std::string& url,
                                 const ProgressFn& progress,
                                 std::shared_ptr<ObjectStore> objects = nullptr);

}  // namespace vellum::remote
