// remote/session/missing_pieces.hpp: the list of a remote's pieces with the packs that a lazy clone
// lacks.
//
// It is the file `remotes/origin.pieces` in the store, and is replaced as a whole. It exists as
// long as packs may be remote, and lists a piece before any version of the store needs it. A pack
// that is a file of the store is read from there, even if the list has pieces of it.
#pragma once

#include <string>

#include "remote/objects/piece_list.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

std::string missing_pieces_path(const std::string& store_path);
bool has_missing_pieces(base::Fs& fs, const std::string& store_path);
// Errc::not_found: no such file; corrupted names the file.
VersionPieces read_missing_pieces(base::Fs& fs, const std::string& store_path,
                                  const format::FileSeal& seal);
// Durable on return.
void write_missing_pieces(store::StoreDirectory& store, const VersionPieces& pieces);
// Ends the lazy clone. Durable on return. REQUIRES: all packs are files of the store.
void remove_missing_pieces(store::StoreDirectory& store);

// Adds the pieces, their spans and the roots that `to` lacks. False: nothing was missing. REQUIRES:
// both have spans for each piece.
bool add_pieces(VersionPieces& to, const VersionPieces& more);

// Removes a remote from the store. Errc::not_found names it; busy: packs of the store exist only
// there. Its objects stay.
void remove_remote(store::StoreDirectory& store, const std::string& name);

}  // namespace vellum::remote
