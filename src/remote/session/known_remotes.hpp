// remote/session/known_remotes.hpp: the remotes that a store knows, by name.
#pragma once

#include <string>
#include <vector>

#include "remote/engine/object_store.hpp"
#include "remote/objects/remote_file.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// The remote of a command that names none, and the one that a clone comes from.
inline constexpr const char* kDefaultRemoteName = "origin";

// Where a store keeps what it knows of its remotes.
inline constexpr const char* kRemotesDirectoryName = "remotes";
// In that directory: copies of lists and of contents of pieces.
inline constexpr const char* kRemoteCacheName = "cache";

// A clone has this behind its name until it is whole.
inline constexpr const char* kUnfinishedCloneSuffix = ".vellum-clone";

// The remotes that a store knows, sorted.
std::vector<std::string> remote_names(const store::StoreDirectory& store);
// Errc::not_found names the remote, corrupted the file.
RemoteFile read_remote_file(const store::StoreDirectory& store, const std::string& name);

// Where the file of a remote is, and what else a store keeps of its remotes.
std::string remotes_directory(const store::StoreDirectory& store);
// Its name is durable on return, also where its maker was killed before it was.
void make_remotes_directory(store::StoreDirectory& store);
void write_remote_file(store::StoreDirectory& store, const std::string& name,
                       const RemoteFile& file, bool replace);

// Errc::invalid_argument: it is malformed, or too long.
void require_url(const std::string& url);
// A remote of another store is refused before anything is written there: Errc::invalid_argument.
// There may be none yet.
void require_same_store(ObjectStore& objects, const store::StoreDirectory& store);

// Notes a new remote. Errc::already_exists: one has the name; invalid_argument: it is malformed.
void add_remote_file(store::StoreDirectory& store, const std::string& name, const std::string& url,
                     bool one_writer);
// The same, after a probe of its server; the remote is checked to be this store's, or new.
// Errc::unsupported: the server lets two creators of an object win, and `one_writer` is false;
// invalid_argument: the remote has the versions of another store. True: one creator won each time.
bool add_remote(store::StoreDirectory& store, const std::string& name, const std::string& url,
                bool one_writer);
// The name under which the store knows the remote at `url`; makes it known if it is not, as
// add_remote() does.
std::string know_remote(store::StoreDirectory& store, const std::string& url);

// Puts the store's superblock where the remote has none. Errc::invalid_argument: it has that of
// another store.
void restore_superblock(ObjectStore& objects, const store::StoreDirectory& store);

// Errc::not_found names the remote. The objects stay. REQUIRES: no pack of the store is there alone;
// remove_remote() sees to it (remote/session/missing_pieces.hpp).
void remove_remote_file(store::StoreDirectory& store, const std::string& name);

}  // namespace vellum::remote
