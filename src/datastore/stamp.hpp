// datastore/stamp.hpp: DIR/closed says of which commit the files in DIR/files are.
//
// Who closes a datastore leaves it, and who opens one to write takes it away first. With it, the
// files are left as they are: somebody may have changed them since, as Metall does when it gives an
// object of a closed datastore a description. Without it, after a crash, they are put back from the
// commit. It is durable only after the files are, and gone before they change.
#pragma once

#include <vellum/store.hpp>

#include "datastore/place.hpp"

namespace vellum::datastore {

bool is_stamped(const Place& place, const VersionInfo& version);

// Flushes the files, and stamps them. Best effort: where that cannot be written there is no stamp.
void stamp(const Place& place, const VersionInfo& version) noexcept;

// Durable on return. Throws Errc::io.
void remove_stamp(const Place& place);

}  // namespace vellum::datastore
