// store/catalog/kept_version.hpp: a version by name, kept from gc.
#pragma once

#include <string>

#include "store/catalog/store_core.hpp"
#include "store/lock/lease.hpp"

namespace vellum::store {

// The result of resolve_version(); all of it stays readable while the lease lives.
struct KeptVersion {
  ResolvedVersion version;
  Lease lease;
};
KeptVersion resolve_kept(StoreCore& store, const std::string& name);

}  // namespace vellum::store
