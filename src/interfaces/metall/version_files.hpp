// interfaces/metall/version_files.hpp: the files of a version, and the directory that should hold
// them.
#pragma once

#include <string>
#include <vellum/datastore.hpp>

#include "interfaces/metall/place.hpp"

namespace vellum::datastore {

// For messages.
std::string label_of(const DatastorePlace& place);

// The size of the segment in the version's region. Throws Errc::not_found: it is no datastore.
std::uint64_t segment_bytes_of(const Store& store, const DatastorePlace& place);

// Whether the version has a commit of a datastore. False: its creation was cut off.
// Errc::corrupted.
bool has_commit(const Store& store, const DatastorePlace& place);

// Locks the version against writers while the result exists: a branch has one writer, and a
// snapshot none. Throws Errc::busy.
Region keep_writers_out(Store& store, const DatastorePlace& place);

// Makes the directory of files equal to the version, and stamps it. REQUIRES: no other process
// writes the version. Throws Errc::not_found when it has no commit.
void put_files_back(const Store& store, const DatastorePlace& place,
                    const DatastoreOptions& options);

// The same for readers, of which several may run at once. Throws Errc::busy: there is a writer.
void settle_files(Store& store, const DatastorePlace& place, const DatastoreOptions& options);

}  // namespace vellum::datastore
