#include "run/live/one_store.hpp"

#include "base/threads/per_process.hpp"

namespace vellum::preload {

std::shared_ptr<Store> store_of_process(const std::string& path) {
  static base::SharedInProcess<Store> shared;
  return shared.get([&] { return std::make_shared<Store>(Store::open(path)); });
}

}  // namespace vellum::preload
