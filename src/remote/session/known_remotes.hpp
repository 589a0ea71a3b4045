// remote/session/known_remotes.hpp: the remotes of a store, by name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vellum/remote.hpp>

#include "remote/engine/object_store.hpp"
#include "remote/objects/remote_file.hpp"
#include "remote/seal/remote_superblock.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// The default remote of commands, and the source of a clone.
inline constexpr const char* kDefaultRemoteName = "origin";

// The directory with a store's files about its remotes.
inline constexpr const char* kRemotesDirectoryName = "remotes";
// In that directory: copies of lists and of piece indices.
inline constexpr const char* kRemoteCacheName = "cache";

// The suffix of an unfinished clone's directory.
inline constexpr const char* kUnfinishedCloneSuffix = ".vellum-clone";

// The names of the store's remotes, sorted.
std::vector<std::string> remote_names(const store::StoreDirectory& store);
// Errc::not_found names the remote, corrupted the file.
RemoteFile read_remote_file(const store::StoreDirectory& store, const std::string& name);

// The path of kRemotesDirectoryName in the store.
std::string remotes_directory(const store::StoreDirectory& store);
// Creates it if it is missing. Its name is durable on return, even if its creator was killed.
void make_remotes_directory(store::StoreDirectory& store);
void write_remote_file(store::StoreDirectory& store, const std::string& name,
                       const RemoteFile& file, bool replace);

// Errc::invalid_argument: it is malformed, or too long.
void require_url(const std::string& url);
// Errc::invalid_argument: it is the store's own directory, one in it, or one above it.
void require_outside(const store::StoreDirectory& store, const std::string& url);
// Errc::invalid_argument: the remote has the versions of another store; wrong_key: one of the two is
// encrypted, the other is not, or the objects are not encrypted with the key with which these are
// opened. It may be empty. Call it before anything is written there.
void require_same_store(ObjectStore& objects, const store::StoreDirectory& store);
// What a store keeps about the key of an opened remote; nullopt: its objects are not encrypted.
std::optional<ObjectsKeyEntry> key_entry_of(const ObjectStore& objects);
// Whether a remote of the store is encrypted by objects. Not an error: one that cannot be read.
bool has_encrypted_remote(const store::StoreDirectory& store);

// Adds a remote. Errc::already_exists: the name is in use; invalid_argument: the name or the URL is
// malformed.
void add_remote_file(store::StoreDirectory& store, const std::string& name, const std::string& url,
                     bool one_writer, std::optional<ObjectsKeyEntry> objects_key = std::nullopt,
                     std::optional<RemoteLock> lock = std::nullopt);
// The same, after a probe of its server and a check that the remote is this store's or empty.
// Errc::unsupported: the server lets two creators of an object win, and `one_writer` is false;
// otherwise as in require_same_store(). True: the probe found no fault. With a lock, or where a
// store has put a note of one: objects are locked; Errc::unsupported: nothing can be locked there.
// To be encrypted: a new remote gets a data key, and an existing one is opened. Errc::unsupported:
// the store is encrypted; wrong_key: a plain remote exists, or key_source() has no secret for that
// which exists, or wants an encrypted one.
bool add_remote(store::StoreDirectory& store, const std::string& name, const std::string& url,
                const AddRemoteOptions& options);
// The name of the store's remote at `url`; adds the remote if it is new, as add_remote() does.
std::string know_remote(store::StoreDirectory& store, const std::string& url);

// Writes the store's superblock to the remote if it is missing there, and before it these key slots,
// if it has keys. One that is damaged is replaced if the newest head there is the store's, or
// `is_known`: the store has pushed or pulled there. True: it was. Errors as in require_same_store();
// Errc::corrupted: it is damaged, and perhaps another store's.
bool restore_superblock(ObjectStore& objects, const store::StoreDirectory& store,
                        std::span<const std::byte> slots, bool is_known);

// Errc::not_found names the remote. Its objects stay. REQUIRES: each pack of the store has a local
// file; remove_remote() checks that (remote/session/missing_pieces.hpp).
void remove_remote_file(store::StoreDirectory& store, const std::string& name);

}  // namespace vellum::remote
