// remote/lazy/open_remote.hpp: a remote as a store that can be read.
#pragma once

#include <memory>
#include <string>
#include <vellum/remote_options.hpp>

#include "base/file.hpp"
#include "remote/engine/object_store.hpp"
#include "store/catalog/store_core.hpp"

namespace vellum::remote {

// The store has the names of the remote's newest head, as it is now. Its records come when they are
// read. `objects` stands in for what the URL names, if it is not null. Errc::not_found: there is no
// remote; invalid_argument: the URL or an option is malformed.
std::shared_ptr<store::StoreCore> open_remote(base::Fs& fs, const std::string& url,
                                              const RemoteOptions& options = {},
                                              std::unique_ptr<ObjectStore> objects = nullptr);

}  // namespace vellum::remote
