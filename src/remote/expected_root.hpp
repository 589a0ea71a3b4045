// remote/expected_root.hpp: a pull that wants a version with a known root.
#pragma once

#include <string>
#include <vector>

#include "remote/objects/remote_version.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// Those of `wanted` whose signature states this root, as hexadecimal digits; none for "".
// Errc::untrusted: no version does.
std::vector<const RemoteVersion*> claims_of_root(const std::vector<const RemoteVersion*>& wanted,
                                                 const std::string& root, const std::string& url);

// What a remote states may be forged: computes the root of each of these versions from what the store
// has now. Reads them whole. Errc::untrusted: one has another root.
void require_root(store::StoreDirectory& store, const std::vector<const RemoteVersion*>& claims,
                  const std::string& url);

}  // namespace vellum::remote
