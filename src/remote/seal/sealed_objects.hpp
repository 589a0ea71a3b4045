// remote/seal/sealed_objects.hpp: the objects of an encrypted remote of a plain store, as the rest of
// the code sees them: plain, under their own keys.
//
// Below it, an object is sealed as a whole (remote/seal/sealed_object.hpp), and the hash in its name
// is encrypted: who has no key cannot ask whether some content is there. Superblock and key slots
// are as they are.
#pragma once

#include <memory>

#include "remote/engine/object_store.hpp"

namespace vellum::remote {

// Errc::corrupted, from its get() and get_range(): the object does not open. Errors of `objects` name
// an object as it is named there.
std::shared_ptr<ObjectStore> open_sealed_objects(std::shared_ptr<ObjectStore> objects,
                                                 ObjectsKey key);

// The name in the bucket of an object whose name contains a hash; any other as it is.
std::string sealed_key(const base::ObjectKeys& keys, const std::string& key);
// Its inverse; empty: it was not named with this key.
std::string opened_key(const base::ObjectKeys& keys, const std::string& key);

}  // namespace vellum::remote
