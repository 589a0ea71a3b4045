// remote/lazy/open_remote.hpp: opens a store at a URL, or a local store that may be a lazy clone.
#pragma once

#include <memory>
#include <string>
#include <vellum/remote_options.hpp>

#include "base/files/file.hpp"
#include "format/wire/superblock.hpp"
#include "remote/engine/object_store.hpp"
#include "remote/objects/head.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// The store has the versions of the remote's current newest head. Records are fetched when they are
// read. `objects` replaces the engine of the URL unless it is null. Errc::not_found: no remote;
// invalid_argument: the URL or an option is malformed; wrong_key: as of unlock_remote().
std::shared_ptr<store::StoreDirectory> open_remote(base::Fs& fs, const std::string& url,
                                                   const RemoteOptions& options = {},
                                                   std::shared_ptr<ObjectStore> objects = nullptr);

// The same, with a head that the caller has read, and the keys with which it was opened.
std::shared_ptr<store::StoreDirectory> open_head(base::Fs& fs, const format::Superblock& superblock,
                                                 std::shared_ptr<const base::StoreKeys> keys,
                                                 Head head, const RemoteOptions& options,
                                                 std::shared_ptr<ObjectStore> objects);

// The store in a directory, for a command on its remotes: PlainStores::with_encrypted_remote.
// Otherwise like open_store().
std::shared_ptr<store::StoreDirectory> open_store_with_remotes(
    base::Fs& fs, const std::string& path, std::shared_ptr<const base::StoreKeys> keys = nullptr);

// The store in a directory. The records of a lazy clone are fetched when they are read; opening it
// makes no request, but needs the key of a remote that is encrypted by objects. Otherwise like
// StoreDirectory::open(), and `options` are ignored.
std::shared_ptr<store::StoreDirectory> open_store(
    base::Fs& fs, const std::string& path, const RemoteOptions& options = {},
    std::shared_ptr<ObjectStore> objects = nullptr,
    std::shared_ptr<const base::StoreKeys> keys = nullptr,
    store::PlainStores plain = store::PlainStores::if_wanted);

}  // namespace vellum::remote
