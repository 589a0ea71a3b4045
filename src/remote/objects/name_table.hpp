// remote/objects/name_table.hpp: the names that a head need not repeat.
#pragma once

#include <span>
#include <vector>

#include "remote/objects/head.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxNameTableBytes = 64u << 20;

// The names, ascending, and the generation of the object.
std::vector<std::byte> encode_name_table(std::span<const RemoteVersion> names,
                                         std::uint32_t generation, const format::Uuid& store_id);
// nullptr, or a description of the error.
const char* decode_name_table(std::span<const std::byte> bytes, const format::Uuid& store_id,
                              std::vector<RemoteVersion>& out);

// All names of a head, out of its own and its table's.
std::vector<RemoteVersion> all_names(const Head& head, const std::vector<RemoteVersion>& table);
// Sets what of `names`, all that the head is to have, it has itself besides the table.
void set_names(Head& head, const std::vector<RemoteVersion>& names,
               const std::vector<RemoteVersion>& table);

// Whether the head's own names have become so many that a new table is cheaper. Each push sends the
// head; a push of every n-th sends a table. Both cost the same where n is the root of twice the
// names of the table.
bool wants_new_table(const Head& head, const std::vector<RemoteVersion>& table) noexcept;

}  // namespace vellum::remote
