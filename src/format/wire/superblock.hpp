// format/wire/superblock.hpp: the file `vellum.store`, which marks a directory as a store. It is
// written once and never changed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/wire/encoding.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::size_t kSuperblockBytes = 72;

struct Superblock : Encoding {
  Uuid store_id{};
  std::int64_t created_ns = 0;
  std::uint64_t pack_bytes = 256ULL << 20;  // a pack that exceeds this is sealed
  std::uint32_t journal_half_bytes = 2u << 20;
  bool encrypted = false;  // format 1.1
  bool operator==(const Superblock&) const = default;
};

std::vector<std::byte> encode_superblock(const Superblock& sb);

enum class SuperblockStatus { ok, not_a_store, newer_format, corrupted };
// Every field of `out` is range-checked when the status is ok.
SuperblockStatus decode_superblock(std::span<const std::byte> bytes, Superblock& out) noexcept;

// The seed of every checksum in the store. A stray record of another store therefore does not
// verify.
std::uint64_t checksum_seed(const Uuid& store_id) noexcept;

// Checks a branch or snapshot name: 1..kMaxNameBytes bytes of [A-Za-z0-9._+-] or UTF-8 beyond
// ASCII, not starting with '.' or '-', without '/', control characters or spaces. Returns nullptr
// for a good name, otherwise a description of the error.
const char* name_problem(std::string_view name) noexcept;

}  // namespace vellum::format
