// store/check/verify_pack.hpp: checks of a single pack; internal to verify.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

struct PackProblem {
  std::string object;
  std::string reason;
};

// Reads the file again, open or not, and checks header and translation. Returns the pack's size, or
// nullopt and a reason.
std::optional<std::uint64_t> check_pack_header(StoreDirectory& store, std::uint64_t pack,
                                               std::string& reason);

// Checks trailer, index, and the headers of those records of the index whose offsets are in
// `needed`. gc may have freed the others. A pack without a trailer is no problem: pulled packs have
// none. REQUIRES: no writer writes the pack any more.
std::vector<PackProblem> check_pack_index(StoreDirectory& store, std::uint64_t pack,
                                          std::uint64_t bytes,
                                          const std::set<std::uint64_t>& needed);

}  // namespace vellum::store
