#include "store/catalog/kept_version.hpp"

namespace vellum::store {

KeptVersion resolve_kept(StoreDirectory& store, const std::string& name) {
  NamesShared names(store);
  KeptVersion kept{resolve_version(store, name), {}};
  kept.version_pin = VersionPin(store, std::move(names), kept.version.version);
  return kept;
}

}  // namespace vellum::store
