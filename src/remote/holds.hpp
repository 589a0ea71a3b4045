// remote/holds.hpp: holds keep gc of a remote from deleting what lazy clones need.
// docs/remote-format.md says why none is overlooked.
#pragma once

#include <string>
#include <vector>

#include "remote/objects/hold.hpp"
#include "remote/objects/piece_list.hpp"
#include "remote/session/session.hpp"

namespace vellum::remote {

// Puts the hold of the session's store, in the place of the one before; where that is of a copy of
// the store, with what that needs, too. It counts from the moment
// that a head read afterwards has the generation of the head from which the pieces are known.
void put_hold(const Session& session, const PieceList& pieces);
// Puts it again where somebody has removed it.
void restore_hold(const Session& session, const PieceList& pieces);
// Leaves one that a copy of the store has put.
void remove_hold(const Session& session);

// All holds. Errc::corrupted, newer_format: one cannot be read; what it lists is not known.
std::vector<Hold> read_holds(const Remote& remote);
// Errc::not_found: there is no such hold; invalid_argument: it is no name of one.
void forget_hold(const Remote& remote, const std::string& name);

}  // namespace vellum::remote
