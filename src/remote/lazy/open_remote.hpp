// remote/lazy/open_remote.hpp: stores whose packs are at a remote, all of them or some.
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

// The store has the names of the remote's newest head, as it is now. Its records come when they are
// read. `objects` stands in for what the URL names, if it is not null. Errc::not_found: there is no
// remote; invalid_argument: the URL or an option is malformed.
std::shared_ptr<store::StoreDirectory> open_remote(base::Fs& fs, const std::string& url,
                                                   const RemoteOptions& options = {},
                                                   std::shared_ptr<ObjectStore> objects = nullptr);

// The same for a head that the caller has read.
std::shared_ptr<store::StoreDirectory> open_head(base::Fs& fs, const format::Superblock& superblock,
                                                 Head head, const RemoteOptions& options,
                                                 std::shared_ptr<ObjectStore> objects);

// The store in a directory. Of one that was cloned lazily, packs come from its remote when they are
// read; opening it makes no request. Otherwise as StoreDirectory::open(), and `options` do not count.
std::shared_ptr<store::StoreDirectory> open_store(base::Fs& fs, const std::string& path,
                                                  const RemoteOptions& options = {},
                                                  std::shared_ptr<ObjectStore> objects = nullptr);

}  // namespace vellum::remote
