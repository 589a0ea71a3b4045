// datastore/place.hpp: where the parts of a datastore are (vellum/datastore.hpp says which).
#pragma once

#include <string>

namespace vellum::datastore {

inline constexpr char kMainBranch[] = "main";

struct Place {
  std::string directory;        // of the datastore itself: files, and the store or a link
  std::string store;            // the store's path, there or not
  std::string version;          // in the store
  std::string owner_directory;  // of the datastore that has the store
  bool linked = false;

  std::string files() const { return directory + "/files"; }
  std::string link() const { return directory + "/link"; }
};

// Of a path as users write it: a directory, or DIR@NAME. Throws Errc::damaged for a link that says
// nothing sensible.
Place place_of(const std::string& path);

// Whether anything of a datastore is there.
bool is_there(const Place& place);

// Makes the directory of a path, empty of a datastore.
void make_directory(const Place& place);

// The name that a snapshot at `path` gets in `store_path`; for DIR@NAME, which must be of that
// store (Errc::invalid_argument), NAME.
std::string snapshot_name(const Place& place, const std::string& store_path);

// Durable on return.
void write_link(const Place& place, const std::string& store_path, const std::string& version);

}  // namespace vellum::datastore
