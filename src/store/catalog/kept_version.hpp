// store/catalog/kept_version.hpp: a version by name, pinned against gc.
#pragma once

#include <string>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// The result of resolve_version(). It stays readable during the lifetime of the pin.
struct KeptVersion {
  ResolvedVersion version;
  VersionPin version_pin;
};
KeptVersion resolve_kept(StoreDirectory& store, const std::string& name);

}  // namespace vellum::store
