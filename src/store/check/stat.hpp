// store/check/stat.hpp: the distribution of a store's bytes.
#pragma once

#include <vellum/report.hpp>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

StoreStat stat_store(StoreDirectory& store);

}  // namespace vellum::store
