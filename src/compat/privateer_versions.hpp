// compat/privateer_versions.hpp: the versions of a Privateer base: directories beside a store.
//
// A version is a directory with its mark (privateer_mark.hpp), and a name in the store. What lacks
// one of the two is no version; a name without the mark is what is left of one whose directory, or
// files, somebody has removed, and makes way for a new version.
#pragma once

#include <optional>
#include <string>
#include <vellum/store.hpp>

#include "compat/privateer_mark.hpp"

namespace vellum::compat {

// Where a version is, or would be.
struct Place {
  std::string directory;
  std::string store;
  std::string name;     // in the store
  bool in_base = true;  // the store is BASE/blocks, the directory below BASE; else each is anywhere

  std::string label() const;  // for messages
};

Place place_in_base(const std::string& base, const std::string& version);
// A directory anywhere: its name in the store comes from its whole path.
Place place_beside_blocks(const std::string& blocks, const std::string& directory);
// By what its mark says; without one as if in BASE. Errc::not_found: there is no such directory.
Place place_of_directory(const std::string& directory);

// What a directory stands for.
struct Found {
  std::string name;      // in the store: its own; or, of a copy of files, the other version's
  bool is_copy = false;  // of another version's files
  std::uint64_t block_bytes = 0;
};

bool is_directory(const std::string& path);
// With those above it, when it is missing (true); in any case durable in the one above it: a
// version whose directory a crash takes away would be one that somebody removed.
bool make_directory(const std::string& directory);

// Waits for another process that is making it.
Store open_or_create_blocks(const std::string& path);
Store open_blocks(const Place& place);

// Without a value: no version. Errc::not_found for a copy of what has gone since.
std::optional<Found> find_version(const Store& store, const Place& place);
Found require_version(const Store& store, const Place& place);
// Whether a new version is kept from its place by one that has its mark.
bool is_taken(const Store& store, const Place& place);

// Makes the directory, removes what is left of an earlier version of that name, writes the mark.
// The name is free then. Takes back at its end what it has made, unless `keep()` has been called.
class NewVersion {
 public:
  NewVersion(Store& store, const Place& place, std::uint64_t block_bytes);
  ~NewVersion();
  NewVersion(const NewVersion&) = delete;
  NewVersion& operator=(const NewVersion&) = delete;
  void keep() noexcept { kept_ = true; }

 private:
  std::string directory_;
  bool made_directory_ = false;
  bool kept_ = false;
};

// The mark says from now on that the version has the commit that it has.
void mark_state(const Store& store, const Place& place, std::uint64_t block_bytes);

// A branch from a version that may be a branch itself. Errc::busy when that has commits in its
// journal and somebody is writing it.
void branch_from(Store& store, const std::string& name, const std::string& from);

// Before a version of a base goes on, or away: directories in the base that have a copy of its
// files as they are now become versions of their own. REQUIRES: nobody writes it.
void keep_copies(Store& store, const Place& place);

// Makes the version one that can be written: a branch of its own name. Its mark says so.
void make_writable(Store& store, const Place& place, const Found& found);

}  // namespace vellum::compat
