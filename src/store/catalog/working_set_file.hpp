// store/catalog/working_set_file.hpp: which pages the last use of a branch or a snapshot touched,
// kept for the next in hints/<name>.set.
//
// Nobody needs such a file: missing, torn, damaged, of another store, or of what had the name
// before, it is as if it was not there, and the next that closes the version replaces it. So it is
// not synced, and nothing here throws Error: a medium that is read-only or full, or a store that
// belongs to someone else, has no hint, which costs what opening without one costs.
//
// Of several that use a version at once, the last to close is remembered: the file is written
// beside its place and renamed. The directory is made with the first file.
#pragma once

#include <string>
#include <vector>

#include "format/working_set.hpp"
#include "store/pack/pack_store.hpp"
#include "store/page_map/resolved_version.hpp"

namespace vellum::store {

format::WorkingSetOwner working_set_owner(const ResolvedVersion& version);
format::WorkingSetOwner working_set_owner_of_branch(std::uint64_t branch_id);

// Empty: there is none of this owner.
std::vector<format::PageRange> read_working_set(PackStore& store, const std::string& name,
                                                const format::WorkingSetOwner& owner);
// Unless the name is gone.
void write_working_set(PackStore& store, const std::string& name, const format::WorkingSet& set);
void remove_working_set(PackStore& store, const std::string& name);
// For gc: removes those of names that are gone, and what a crash has left of one in the making. One
// that is being made just now may go, too.
void sweep_working_sets(PackStore& store);
std::uint64_t allocated_bytes_of_working_sets(PackStore& store);

std::string working_set_path(const PackStore& store, const std::string& name);

}  // namespace vellum::store
