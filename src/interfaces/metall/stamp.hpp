// interfaces/metall/stamp.hpp: DIR/closed, which names the commit of the files in DIR/files.
//
// Closing a datastore writes it, and opening one to write first removes it. With it, the files stay
// as they are: a program may have changed them since, as Metall does when it adds a description to
// an object of a closed datastore. Without it, after a crash, the files are restored from the
// commit.
//
// A lasting stamp is durable only after the files are, and is removed before they change. A stamp
// for this boot is not flushed, which makes a snapshot cheaper: it is invalid after a reboot.
#pragma once

#include <vellum/store.hpp>

#include "interfaces/metall/place.hpp"

namespace vellum::datastore {

bool is_stamped(const DatastorePlace& place, const VersionInfo& version);

enum class Lasting { this_boot, for_ever };
// Best effort: if writing fails there is no stamp.
void stamp(const DatastorePlace& place, const VersionInfo& version, Lasting lasting) noexcept;

// Durable on return. Throws Errc::io.
void remove_stamp(const DatastorePlace& place);

}  // namespace vellum::datastore
