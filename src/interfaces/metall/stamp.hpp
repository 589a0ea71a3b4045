// interfaces/metall/stamp.hpp: DIR/closed, which names the commit of the files in DIR/files.
//
// Closing a datastore writes it, and opening one to write first removes it. With it, the files are
// left as they are: somebody may have changed them since, as Metall does when it gives an object of
// a closed datastore a description. Without it, after a crash, the files are put back from the
// commit.
//
// A lasting stamp is durable only after the files are, and gone before they change. One for this
// boot flushes nothing, so a snapshot need not: after a power failure it says nothing.
#pragma once

#include <vellum/store.hpp>

#include "interfaces/metall/place.hpp"

namespace vellum::datastore {

bool is_stamped(const DatastorePlace& place, const VersionInfo& version);

enum class Lasting { this_boot, for_ever };
// Best effort: where writing fails there is no stamp.
void stamp(const DatastorePlace& place, const VersionInfo& version, Lasting lasting) noexcept;

// Durable on return. Throws Errc::io.
void remove_stamp(const DatastorePlace& place);

}  // namespace vellum::datastore
