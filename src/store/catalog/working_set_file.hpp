// store/catalog/working_set_file.hpp: the pages that the last use of a branch or snapshot touched,
// saved for the next use in hints/<name>.set.
//
// The file is dispensable: if it is missing, torn, corrupted, of another store or of an earlier
// version of that name, it counts as absent, and the next close of the version replaces it.
// Therefore it is not synced, and these functions throw no Error but out_of_memory. A read-only or
// full medium, or a store of another user, has no hint; opening then costs no more than without it.
//
// If several processes use a version, the last close wins: the file is written under another name
// and renamed. The first file creates the directory.
#pragma once

#include <string>
#include <vector>

#include "format/working_set.hpp"
#include "store/packs/record/pack_store.hpp"
#include "store/page_map/resolved_version.hpp"

namespace vellum::store {

format::WorkingSetOwner working_set_owner(const ResolvedVersion& version);
format::WorkingSetOwner working_set_owner_of_branch(std::uint64_t branch_id);
format::WorkingSetOwner working_set_owner(const format::Version& version, bool is_branch);

// Empty if this owner has none.
std::vector<format::PageRange> read_working_set(PackStore& store, const std::string& name,
                                                const format::WorkingSetOwner& owner);
// Does nothing if the name is removed.
void write_working_set(PackStore& store, const std::string& name, const format::WorkingSet& set);
void remove_working_set(PackStore& store, const std::string& name);
// For gc: removes the files of removed names, and those that a crash left unfinished. It may also
// remove a file that is being written now.
void sweep_working_sets(PackStore& store);
std::uint64_t allocated_bytes_of_working_sets(PackStore& store);

std::string working_set_directory(const std::string& store_path);
std::string working_set_path(const std::string& store_path, const std::string& name);

}  // namespace vellum::store
