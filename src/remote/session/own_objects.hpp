// remote/session/own_objects.hpp: gives lists and pieces that only heads have objects of their own.
//
// gc deletes heads, and a hold names objects: both first put what is needed of the heads. The
// object has the name that the lists already state.
#pragma once

#include "remote/session/remote.hpp"

namespace vellum::remote {

// Does nothing if no head has it. Durable on return. Errc::corrupted: it is damaged, or the head is
// lost.
void give_own_object(const Remote& remote, const PieceName& piece);
// The lists and pieces of each version in the head. Then they are no longer embedded in it.
void give_own_objects(const Remote& remote, Head& head);

}  // namespace vellum::remote
