// store/catalog/lock/remote_readers.hpp: versions of a lazy clone that processes read from its
// remote.
#pragma once

namespace vellum::store {

class PackStore;

// Whether a process has a version open, and opened it while packs of the store were remote. It may
// read pieces at the remote for as long as the version is open, even if the packs are files by now.
bool has_remote_readers(PackStore& store);

}  // namespace vellum::store
