// remote/session/remote_lock.hpp: the duration for which a remote's objects are locked.
//
// A store that pushes there knows it by itself (RemoteFile::lock). The note at the remote tells it
// to gc and to new stores: in a plain remote, who can write there can forge it, and a store puts
// its own again (remote/locks.hpp).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "remote/engine/object_versions.hpp"
#include "remote/session/remote.hpp"

namespace vellum::remote {

// From now on, objects are locked when they are put, without probes and the copy of the newest
// head. Errc::unsupported: nothing can be locked there.
void lock_puts(ObjectStore& objects, std::chrono::seconds duration);

// Nullopt: there is none. Errc::corrupted, wrong_key: it is damaged or forged.
std::optional<std::chrono::seconds> lock_note_at(const Remote& remote);
void put_lock_note(const Remote& remote, std::chrono::seconds duration);

// "30 days", "90 seconds".
std::string lock_text(std::chrono::seconds duration);

// The same for who trusts no note: at most for as long as the newest heads were locked, if there are
// any. Otherwise one forged note would lock all objects for a century, by the next command. A note
// that is longer is a warning.
std::optional<std::chrono::seconds> credible_lock_note(const Remote& remote,
                                                       std::vector<std::string>* warnings);

// For a command without a store: locks puts as credible_lock_note() says, unless a store has done
// so. Returns the duration. Errc::unsupported: there is a note, and nothing can be locked there.
std::optional<std::chrono::seconds> follow_lock_note(const Remote& remote,
                                                     std::vector<std::string>* warnings = nullptr);

}  // namespace vellum::remote
