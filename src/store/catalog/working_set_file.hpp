// store/catalog/working_set_file.hpp: the pages that the last use of a branch or snapshot touched.
// They are kept for the next use in hints/<name>.set.
//
// Such a file is dispensable: if it is missing, torn, corrupted, of another store or of an earlier
// holder of the name, it counts as absent, and the next to close the version replaces it. So it is
// not synced, and nothing here throws an Error except for lack of memory. A read-only or full
// medium, or a store of someone else, has no hint; opening then costs no more than without it.
//
// If several use a version at once, the last to close is remembered: the file is written beside its
// place and renamed. The directory is made with the first file.
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

// Empty if there is none of this owner.
std::vector<format::PageRange> read_working_set(PackStore& store, const std::string& name,
                                                const format::WorkingSetOwner& owner);
// Does nothing if the name is gone.
void write_working_set(PackStore& store, const std::string& name, const format::WorkingSet& set);
void remove_working_set(PackStore& store, const std::string& name);
// For gc: removes the files of names that are gone, and those that a crash left unfinished. A file
// that is being written just now may go, too.
void sweep_working_sets(PackStore& store);
std::uint64_t allocated_bytes_of_working_sets(PackStore& store);

std::string working_set_directory(const std::string& store_path);
std::string working_set_path(const std::string& store_path, const std::string& name);

}  // namespace vellum::store
