// group/mpi/datastore_root.hpp: the directory of a group of datastores, and the paths of its
// versions. vellum/mpi_datastore.hpp lists its files.
#pragma once

#include <cstdint>
#include <string>

namespace vellum::mpi {

// The meaning of a path: a group, or a version of a group.
struct DatastorePlace {
  std::string root;
  std::string version;  // empty: the path is that of the group
  std::string link;     // the directory with a link to the version; empty: none
};
// Errc::corrupted: an invalid link.
DatastorePlace datastore_place_of(const std::string& path);

std::string datastore_path(const std::string& root, std::uint32_t partition);
std::string datastore_records(const std::string& root);

// The name for a version at `path`, a directory: its last component, without invalid characters.
std::string version_name_for(const std::string& path);
// Creates the directory `path` with a link to a version. Durable on return.
void write_version_link(const std::string& path, const std::string& root,
                        const std::string& version);

// Removes the files of an existing group that rank 0 can access, for a new group.
// Errc::already_exists: a group with a version exists and `overwrite` is false, or the path has
// another file; invalid_argument: the group has another number of partitions; busy.
void clear_root(const std::string& root, std::uint32_t partitions, bool overwrite);
// Removes all records, the newest last: until then the group is usable. Errc::busy, and
// invalid_argument as above.
void remove_records(const std::string& root, std::uint32_t partitions);
// Removes a datastore, and the group's directory with the last one.
void remove_datastore(const std::string& root, std::uint32_t partition);

}  // namespace vellum::mpi
