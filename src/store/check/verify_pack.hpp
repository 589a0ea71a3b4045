// store/check/verify_pack.hpp: checks of a pack on its own; internal to verify.
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

// Checks header and translation, reading the file afresh whatever is open. Returns the pack's size,
// or nullopt and a reason.
std::optional<std::uint64_t> check_pack_header(StoreDirectory& store, std::uint64_t pack,
                                               std::string& reason);

// Checks trailer, index, and the headers of the records that the index names and `needed` has (by
// place): gc may have given the others back. A pack without a trailer is no problem: records that
// were pulled from a remote have none behind them. REQUIRES: the pack is sealed.
std::vector<PackProblem> check_pack_index(StoreDirectory& store, std::uint64_t pack,
                                          std::uint64_t bytes,
                                          const std::set<std::uint64_t>& needed);

}  // namespace vellum::store
