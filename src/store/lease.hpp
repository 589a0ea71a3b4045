// store/lease.hpp: what keeps gc away from versions that someone has open.
//
// A version that is open needs its runs and records, although its snapshot may be removed and its
// branch may have folded them away since. So whoever opens one leaves a mark, a file in `readers/`
// that names the runs and is locked as long as its process lives; gc takes marks for versions, and
// removes those whose lock is free.
//
// Between reading a name and having marked what it leads to, gc must not look: the flock on
// `vellum.store`, shared, keeps it away. It stands in for the mark, too, where none can be left (a
// full disk, a read-only medium): gc then waits and gives up with Errc::busy.
#pragma once

#include <memory>

#include "store/store_core.hpp"

namespace vellum::store {

using Lease = std::shared_ptr<const void>;

// While it lives, no gc begins to look at names. Hold it from resolving a name until what it led to
// is marked, published under another name, or not needed any more. Waits while a gc looks.
// Errc::busy when that takes long.
Lease hold_names(StoreCore& store);

// Keeps all that `version` needs until the last copy dies. REQUIRES: `names` has been held since
// the version was found.
Lease keep_version(StoreCore& store, Lease names, const format::Version& version);

// resolve_version(), and all of it stays readable while the lease lives.
struct KeptVersion {
  ResolvedVersion version;
  Lease lease;
};
KeptVersion resolve_kept(StoreCore& store, const std::string& name);

// For gc: keeps everybody else from holding names. Errc::busy when someone goes on holding them.
Lease hold_names_alone(StoreCore& store);
// The versions that others have open. Marks of processes that have ended are removed unless
// `look_only`. REQUIRES: names are held.
std::vector<format::Version> kept_versions(StoreCore& store, bool look_only);

}  // namespace vellum::store
