// store/catalog/signing_key.hpp: the key with which this process signs, and the keys that a branch
// wants.
//
// A branch with signers accepts only snapshots that one of them has signed. This is policy, not
// protection: whoever can write the store can remove the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/crypto/ed25519.hpp"
#include "base/crypto/secret.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// None: any snapshot of the branch is accepted. Errc::corrupted. A file that an earlier branch of
// this name has left does not count.
std::vector<base::Ed25519Public> signers_of(const StoreDirectory& store, const std::string& branch);
// The key with which this process signs a snapshot of the branch; empty: it has none. Errc::untrusted:
// the branch wants another.
base::Secret signing_key_for(const StoreDirectory& store, const std::string& branch);
// No keys: any snapshot is accepted again. Errc::not_found, invalid_argument.
void set_signers(StoreDirectory& store, const std::string& branch,
                 const std::vector<base::Ed25519Public>& keys);

}  // namespace vellum::store
