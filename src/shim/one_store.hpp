// shim/one_store.hpp: the store of the run, which all of a process's live files share: a store of
// its own for each would cost a megabyte of memory and a descriptor each.
#pragma once

#include <memory>
#include <string>
#include <vellum/store.hpp>

namespace vellum::shim {

// Open as long as anyone has it. A child of fork(2) gets one of its own. Throws vellum::Error.
std::shared_ptr<Store> store_of_process(const std::string& path);

}  // namespace vellum::shim
