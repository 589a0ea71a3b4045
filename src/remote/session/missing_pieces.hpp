// remote/session/missing_pieces.hpp: which pieces of a remote hold the packs that a lazy clone lacks.
//
// `remotes/origin.pieces` in the store, replaced as a whole. It is there as long as packs may be at
// the remote, and names a piece before any version of the store needs it. A pack that is a file of
// the store is read there, whatever the list says.
#pragma once

#include <string>

#include "remote/objects/piece_list.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

std::string missing_pieces_path(const std::string& store_path);
bool has_missing_pieces(base::Fs& fs, const std::string& store_path);
// Errc::not_found: there is none; corrupted names the file.
VersionPieces read_missing_pieces(base::Fs& fs, const std::string& store_path,
                                  const format::Uuid& store_id);
// Durable on return.
void write_missing_pieces(store::StoreDirectory& store, const VersionPieces& pieces);
// All packs are here. Durable on return.
void remove_missing_pieces(store::StoreDirectory& store);

// Adds the pieces, their spans and the roots that `to` lacks. False: it lacks none.
bool add_pieces(VersionPieces& to, const VersionPieces& more);

// Forgets a remote that the store knows. Errc::not_found names it; busy: packs of the store are there
// alone. What it holds stays there.
void remove_remote(store::StoreDirectory& store, const std::string& name);

}  // namespace vellum::remote
