// region/api/store_impl.hpp: the object behind a Store handle. Internal to the C++ interface.
#pragma once

#include <memory>
#include <utility>
#include <vellum/store.hpp>

#include "store/catalog/store_directory.hpp"

namespace vellum {

struct Store::Impl {
  std::shared_ptr<store::StoreDirectory> core;
};

// Creates handles of a store that is already open: for the interface, and for tests on other file
// systems.
struct StoreAccess {
  static Store handle_of(std::shared_ptr<store::StoreDirectory> core) {
    return Store(std::make_shared<Store::Impl>(Store::Impl{std::move(core)}));
  }
  static const std::shared_ptr<store::StoreDirectory>& core_of(const Store& store) {
    return store.impl_->core;
  }
};

}  // namespace vellum
