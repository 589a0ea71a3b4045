// store/catalog/kept_version.hpp: a version by name, kept from gc.
#pragma once

#include <string>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// The result of resolve_version(); all of it stays readable while the version pin lives.
struct KeptVersion {
  ResolvedVersion version;
  VersionPin version_pin;
};
KeptVersion resolve_kept(StoreDirectory& store, const std::string& name);

}  // namespace vellum::store
