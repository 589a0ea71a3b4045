#include "store/catalog/kept_version.hpp"

namespace vellum::store {

KeptVersion resolve_kept(StoreDirectory& store, const std::string& name) {
  VersionPin names = hold_names(store);
  KeptVersion kept{resolve_version(store, name), nullptr};
  kept.version_pin = keep_version(store, std::move(names), kept.version.version);
  return kept;
}

}  // namespace vellum::store
