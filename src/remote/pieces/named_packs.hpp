// remote/pieces/named_packs.hpp: packs of a version that come without a record.
#pragma once

#include "format/version.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// The root of a run names the packs of all its entries, also of those that a newer run hides. No
// piece has anything of a pack whose entries are all hidden, but who opens the version opens each
// pack that is named. Such a pack comes to be here, durable, as a file with a header alone, which is
// what gc leaves of it, too. REQUIRES: the roots of the version's runs can be read, and gc is kept out.
// Errc::corrupted: a branch of this store has yet to write a pack of this id.
void make_named_packs(store::StoreDirectory& store, const format::Version& version);

}  // namespace vellum::remote
