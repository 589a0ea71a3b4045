// run/live/one_store.hpp: the run's store, which a process's live files share. A separate store for
// each would cost a megabyte of memory and a descriptor.
#pragma once

#include <memory>
#include <string>
#include <vellum/store.hpp>

namespace vellum::preload {

// Stays open while a pointer to it exists. A child of fork(2) gets its own. Throws vellum::Error.
std::shared_ptr<Store> store_of_process(const std::string& path);

}  // namespace vellum::preload
