// remote/objects/name_table.hpp: the versions that a head need not repeat, as an object of its own.
#pragma once

#include <span>
#include <vector>

#include "remote/objects/head.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxNameTableBytes = 64u << 20;

// The versions and the generation of the object. REQUIRES: they ascend by name.
std::vector<std::byte> encode_name_table(std::span<const RemoteVersion> names,
                                         std::uint32_t generation, const format::FileSeal& seal);
// nullptr, or a description of the error.
const char* decode_name_table(std::span<const std::byte> bytes, const format::FileSeal& seal,
                              std::vector<RemoteVersion>& out);

// All versions of a head: its own and those of its table.
std::vector<RemoteVersion> all_names(const Head& head, const std::vector<RemoteVersion>& table);
// Sets the head's own versions and forgotten names such that all_names() is `names`.
void set_names(Head& head, const std::vector<RemoteVersion>& names,
               const std::vector<RemoteVersion>& table);

// Whether the head has so many names of its own that a new table is cheaper. Each push sends the
// head; every n-th push sends a table. Both costs are equal when n is the square root of twice the
// number of names in the table.
bool wants_new_table(const Head& head, const std::vector<RemoteVersion>& table) noexcept;

}  // namespace vellum::remote
