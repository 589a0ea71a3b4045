// remote/pieces/new_pack.hpp: a pack of the remote's store that this store gets as a new file.
#pragma once

#include <cstddef>
#include <vector>

#include "store/catalog/store_directory.hpp"
#include "store/gc/reach/roots.hpp"

namespace vellum::remote {

// How its file begins, while its records are at the places of their references.
std::vector<std::byte> new_pack_header(const store::StoreDirectory& store, std::uint64_t pack);

// Errc::corrupted: a branch of this store has yet to write a pack of this id. REQUIRES: there is no file of it.
void require_not_ours(const store::StoreDirectory& store, const store::Roots& roots,
                      std::uint64_t pack);

}  // namespace vellum::remote
