// api/store_impl.hpp: the object behind a Store handle. Internal to the C++ interface of a store.
#pragma once

#include <memory>
#include <vellum/store.hpp>

#include "store/catalog/store_core.hpp"
#include "store/check/verify.hpp"

namespace vellum {

struct Store::Impl {
  std::shared_ptr<store::StoreCore> core;
};

inline store::ProgressFn forward(const ProgressFn& progress) {
  if (!progress) return nullptr;
  return [progress](const store::Progress& p) { progress({p.done, p.total, p.unit}); };
}

}  // namespace vellum
