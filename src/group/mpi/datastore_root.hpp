// group/mpi/datastore_root.hpp: the directory of a group of datastores, and the paths of its versions.
// vellum/mpi_datastore.hpp lists its parts.
#pragma once

#include <cstdint>
#include <string>

namespace vellum::mpi {

// What a path names: a group, or a version of one.
struct DatastorePlace {
  std::string root;
  std::string version;  // empty: the path is that of the group
  std::string link;     // the directory that links to the version; empty: there is none
};
// Errc::corrupted: an invalid link.
DatastorePlace datastore_place_of(const std::string& path);

std::string datastore_path(const std::string& root, std::uint32_t partition);
std::string datastore_records(const std::string& root);

// The name for a version at `path`, a directory: the last part of it, as far as names may have it.
std::string version_name_for(const std::string& path);
// Makes the directory `path` with a link to a version. Durable on return.
void write_version_link(const std::string& path, const std::string& root,
                        const std::string& version);

// Makes room for a new group, as far as rank 0 has it. Errc::already_exists: a group with a version
// is there, and `overwrite` is false; or something else; invalid_argument: the group has another
// number of partitions; busy.
void clear_root(const std::string& root, std::uint32_t partitions, bool overwrite);
// Removes all records, the newest last: until then the group is whole. Errc::busy, and
// invalid_argument as above.
void remove_records(const std::string& root, std::uint32_t partitions);
// Removes a datastore, and the group's directory with the last one.
void remove_datastore(const std::string& root, std::uint32_t partition);

}  // namespace vellum::mpi
