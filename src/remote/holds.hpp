// remote/holds.hpp: holds keep gc of a remote from deleting the pieces that lazy clones need.
// docs/remote-format.md shows that gc reads each hold in time.
#pragma once

#include <string>
#include <vector>

#include "remote/objects/hold.hpp"
#include "remote/objects/piece_list.hpp"
#include "remote/session/session.hpp"

namespace vellum::remote {

// Writes the hold of the session's store at its place, with the pieces of the previous one, unless
// that is damaged. The hold is effective if a head that is read afterwards has the generation of the
// head from which `pieces` are.
void put_hold(const Session& session, const PieceList& pieces);
// Writes it again if it lacks some of `pieces`: it was removed or damaged, or the store is a
// copy of a lazy clone, perhaps over an older copy.
void restore_hold(const Session& session, const PieceList& pieces);
// The names of the store's holds at the remote: its own, and one of an earlier version of Vellum.
std::vector<std::string> holds_of(const Session& session);
// Removes them, and returns their names. A copy of the store that has not put its own yet loses its
// pieces. Errc::busy: a process still reads pieces. REQUIRES: all packs are files of the store.
std::vector<std::string> release_holds(const Session& session);

// Nullopt: there is none. Errc::corrupted: it is damaged; the message says what to do.
std::optional<Hold> read_hold(const Remote& remote, const std::string& key);
// All holds. Errc::corrupted, newer_format: one cannot be read, so its pieces are unknown.
std::vector<Hold> read_holds(const Remote& remote);
// Errc::not_found: no such hold; invalid_argument: not the name of a hold.
void forget_hold(const Remote& remote, const std::string& name);

}  // namespace vellum::remote
