// remote/session/remote_lock.hpp: the duration for which a remote's objects are locked.
//
// A store that pushes there knows it by itself (RemoteFile::lock). The note at the remote tells it
// to gc and to new stores: in a plain remote, who can write there can forge it, and a store puts
// its own again (remote/locks.hpp).
#pragma once

#include <chrono>
#include <optional>

#include "remote/engine/object_versions.hpp"
#include "remote/session/remote.hpp"

namespace vellum::remote {

// From now on, objects are locked when they are put, without probes and the copy of the newest
// head. Errc::unsupported: nothing can be locked there.
void lock_puts(ObjectStore& objects, std::chrono::seconds duration);

// Nullopt: there is none. Errc::corrupted, wrong_key: it is damaged or forged.
std::optional<std::chrono::seconds> lock_note_at(const Remote& remote);
void put_lock_note(const Remote& remote, std::chrono::seconds duration);

// For a command without a store: locks puts if the remote has a note, and no store has done so.
// Returns the duration.
std::optional<std::chrono::seconds> follow_lock_note(const Remote& remote);

}  // namespace vellum::remote
