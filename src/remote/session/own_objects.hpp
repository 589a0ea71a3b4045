// remote/session/own_objects.hpp: gives lists and pieces that only heads have objects of their own.
//
// gc deletes heads, and a hold names objects: both first put what is needed of the heads. The
// object has the name that the lists already state.
#pragma once

#include "remote/session/remote.hpp"

namespace vellum::remote {

// Those pieces that heads have, concurrently. Durable on return. Returns the pieces that are lost or
// damaged.
std::vector<PieceName> give_own_pieces(const Remote& remote, const PieceList& pieces);
// The lists and pieces of each version in the head. Then they are no longer embedded in it. Returns
// the versions with lost or damaged pieces. Errc::not_found, corrupted: a list is.
std::vector<std::string> give_own_objects(const Remote& remote, Head& head);

}  // namespace vellum::remote
