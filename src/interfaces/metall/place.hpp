// interfaces/metall/place.hpp: the paths of a datastore's parts (vellum/datastore.hpp lists them).
#pragma once

#include <string>

namespace vellum::datastore {

inline constexpr char kMainBranch[] = "main";

struct DatastorePlace {
  std::string directory;        // of the datastore itself: files, and the store or a link
  std::string store;            // the store's path, whether it exists or not
  std::string version;          // in the store
  std::string owner_directory;  // of the datastore that has the store
  bool linked = false;

  std::string files() const { return directory + "/files"; }
  std::string link() const { return directory + "/link"; }
};

// The place of a path as users write it: a directory, or DIR@NAME. Throws Errc::corrupted for an
// invalid link.
DatastorePlace place_of(const std::string& path);

// Whether any part of a datastore exists.
bool is_there(const DatastorePlace& place);

// Creates the directory of a path, with no datastore in it.
void make_directory(const DatastorePlace& place);

// The name for a snapshot at `place` in the store `store_path`, other than `begun`, which is being
// created. For DIR@NAME, which must be of that store (Errc::invalid_argument), NAME.
std::string snapshot_name(const DatastorePlace& place, const std::string& store_path,
                          const std::string& begun);

// Durable on return. REQUIRES: `version` is a valid name.
void write_link(const DatastorePlace& place, const std::string& store_path,
                const std::string& version);

}  // namespace vellum::datastore
