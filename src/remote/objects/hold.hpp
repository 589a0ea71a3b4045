// remote/objects/hold.hpp: the pieces that a lazy clone needs, even if no version of the remote
// does.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"
#include "remote/objects/remote_version.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxHoldBytes = 64u << 20;
inline constexpr std::size_t kMaxHoldPlaceBytes = 4096;

struct Hold {
  WriteId id{};              // of the store at its place; an older Vellum: of the store
  std::int64_t time_ns = 0;  // of its last pull
  std::string place;         // machine and directory of the store at that time, for the operator
  std::vector<ContentName> pieces;  // ascending
  bool operator==(const Hold&) const = default;
};

// REQUIRES: decode_hold() would accept it.
std::vector<std::byte> encode_hold(const Hold& hold, const format::FileSeal& seal);
// nullptr, or a description of the error.
const char* decode_hold(std::span<const std::byte> bytes, const format::FileSeal& seal, Hold& out);

// The id in hexadecimal digits: the name of a hold in commands.
std::string hold_name(const WriteId& id);
std::string hold_key(const WriteId& id);
// nullopt: not the name of a hold.
std::optional<WriteId> parse_hold_name(const std::string& name);

}  // namespace vellum::remote
