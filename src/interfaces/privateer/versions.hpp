// interfaces/privateer/versions.hpp: the versions of a Privateer base: directories next to a store.
//
// A version is a directory with its link (interfaces/privateer/link.hpp), and a name in the store.
// Without one of the two there is no version. A name without the link is the leftover of a version
// whose directory or files were removed; a new version replaces it.
#pragma once

#include <optional>
#include <string>
#include <vellum/store.hpp>

#include "interfaces/privateer/link.hpp"

namespace vellum::privateer {

// The location of an existing or a possible version.
struct VersionPlace {
  std::string directory;
  std::string store;
  std::string name;     // in the store
  bool in_base = true;  // the store is BASE/blocks, the directory below BASE; else any two paths

  std::string label() const;  // for messages
};

VersionPlace place_in_base(const std::string& base, const std::string& version);
// For a directory at any path: the name in the store derives from its whole path.
VersionPlace place_beside_blocks(const std::string& blocks, const std::string& directory);
// Follows the directory's link; without one, assumes BASE. Errc::not_found: no such directory.
VersionPlace place_of_directory(const std::string& directory);

// The version that a directory holds.
struct FoundVersion {
  std::string name;      // in the store: its own; for copied files, the other version's
  bool is_copy = false;  // the files are another version's
  std::uint64_t block_bytes = 0;
};

bool is_directory(const std::string& path);
// Creates a missing directory (true) and those above it. In any case makes it durable in its
// parent: a version whose directory is lost in a crash would count as removed.
bool make_directory(const std::string& directory);

// Waits for another process that is creating the store.
Store open_or_create_blocks(const std::string& path);
Store open_blocks(const VersionPlace& place);

// No value: there is no version. Errc::not_found: a copy of a version that no longer exists.
std::optional<FoundVersion> find_version(const Store& store, const VersionPlace& place);
FoundVersion require_version(const Store& store, const VersionPlace& place);
// Whether the place has a version with its link, so that no new one may be created there.
bool is_taken(const Store& store, const VersionPlace& place);

// Creates the directory, removes the leftover of an earlier version of that name, and writes the
// link. The name is free then. The destructor undoes this, unless `keep()` has been called.
class NewVersion {
 public:
  NewVersion(Store& store, const VersionPlace& place, std::uint64_t block_bytes);
  ~NewVersion();
  NewVersion(const NewVersion&) = delete;
  NewVersion& operator=(const NewVersion&) = delete;
  void keep() noexcept { kept_ = true; }

 private:
  std::string directory_;
  bool made_directory_ = false;
  bool kept_ = false;
};

// Updates the link to the version's current commit.
void update_link(const Store& store, const VersionPlace& place, std::uint64_t block_bytes);

// Call before a version of a base changes or is removed: directories in the base with a copy of its
// current files become versions of their own. REQUIRES: the version has no writer.
void keep_copies(Store& store, const VersionPlace& place);

// Makes the version writable: a branch of the same name. Updates its link.
void convert_to_branch(Store& store, const VersionPlace& place, const FoundVersion& found);

}  // namespace vellum::privateer
