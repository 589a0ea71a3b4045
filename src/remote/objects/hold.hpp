// remote/objects/hold.hpp: what a store that was cloned lazily still needs of a remote, whether a
// version there needs it or not.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/wire/types.hpp"
#include "remote/objects/remote_version.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxHoldBytes = 64u << 20;
inline constexpr std::size_t kMaxHoldPlaceBytes = 4096;

struct Hold {
  WriteId writer{};          // the store, as it names itself to the remote
  std::int64_t time_ns = 0;  // of its last pull
  std::string place;         // machine and directory of the store then, for whoever clears up
  std::vector<ContentName> pieces;  // ascending
  bool operator==(const Hold&) const = default;
};

// REQUIRES: decode_hold() would accept it.
std::vector<std::byte> encode_hold(const Hold& hold, const format::Uuid& store_id);
// nullptr, or a description of the error.
const char* decode_hold(std::span<const std::byte> bytes, const format::Uuid& store_id, Hold& out);

// The writer in hexadecimal digits: how commands name a hold.
std::string hold_name(const WriteId& writer);
std::string hold_key(const WriteId& writer);
// nullopt: it is no such name.
std::optional<WriteId> parse_hold_name(const std::string& name);

}  // namespace vellum::remote
