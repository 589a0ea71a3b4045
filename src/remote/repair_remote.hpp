// remote/repair_remote.hpp: a remote gets back from a store what it has lost.
#pragma once

#include <memory>

#include "remote/upkeep.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

struct RemoteRepairReport {
  std::vector<RemoteDamage> found, left;
  std::uint64_t objects_uploaded = 0, bytes_uploaded = 0;
};

// Looks at every byte of the remote at `url`, removes objects that are damaged, and sends again
// what versions need that the store has, too. Errc::invalid_argument: the remote has the versions
// of another store. `objects` stands in for what the URL names, if it is not null.
RemoteRepairReport repair_remote(store::StoreDirectory& store, const std::string& url,
                                 const ProgressFn& progress,
                                 std::shared_ptr<ObjectStore> objects = nullptr);

}  // namespace vellum::remote
