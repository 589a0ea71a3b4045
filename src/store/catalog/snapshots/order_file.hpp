// store/catalog/snapshots/order_file.hpp: the file snapshots.order, and its lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

inline constexpr const char* kOrderFileName = "snapshots.order";
std::string order_file_path(const PackStore& store);

// The number in the file. nullopt: it is damaged, or being overwritten.
std::optional<std::uint64_t> order_in(const PackStore& store, const base::File& file);
// The same; nullopt, too, if there is no file.
std::optional<std::uint64_t> assigned_order(const PackStore& store);

// The lock under which orders are assigned, and snapshots.newest is written
// (store/catalog/snapshots/newest_snapshots.hpp). It is held until the file is closed. Errc::busy: another
// process does not let go.
void lock_orders(base::File& file);
// The same of the store's file. Null: it has none, or one that cannot be opened for writing.
std::unique_ptr<base::File> lock_orders(const PackStore& store);
// Null, too, if another process does not let go.
std::unique_ptr<base::File> try_lock_orders(const PackStore& store,
                                            std::chrono::milliseconds patience);

}  // namespace vellum::store
