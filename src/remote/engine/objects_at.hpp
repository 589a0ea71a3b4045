// remote/engine/objects_at.hpp: the objects of a place as they were at a time.
//
// An object is there if its newest version of that time was no deletion. Two exceptions: an object
// that is named by its content never changes, so its other versions count, too, whatever was put
// over it or deleted, before that time or after it: that version counts whose content has the hash
// of the name. Where the name is sealed, who has the key chooses (ObjectStore::use_version()). And
// of the duration of locks, today's counts.
//
// The order of versions, and their times, are the place's: this machine's clock does not matter.
#pragma once

#include <memory>

#include "remote/engine/object_versions.hpp"

namespace vellum::remote {

// A read-only place: put(), put_if_absent() and remove() throw Errc::read_only. The first call may
// throw as ObjectVersions::require_versions() does.
std::unique_ptr<ObjectStore> objects_at(std::unique_ptr<VersionedObjects> objects, ServerTime time);

}  // namespace vellum::remote
