// format/superblock.hpp: the file `vellum.store` that makes a directory a store. Written once,
// never changed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/codec.hpp"
#include "format/types.hpp"

namespace vellum::format {

inline constexpr std::size_t kSuperblockBytes = 72;
inline constexpr std::uint32_t kMinBlockBytes = 4u << 10;
inline constexpr std::uint32_t kMaxBlockBytes = kMaxRecordRawBytes;
inline constexpr std::uint64_t kMinPackBytes = 4u << 10;
inline constexpr std::uint64_t kMaxPackBytes = 1ULL << 40;
inline constexpr std::uint32_t kMinJournalHalfBytes = 16u << 10;  // any base frame fits
inline constexpr std::uint32_t kMaxJournalHalfBytes = 1u << 30;

// How a writer stores pages. A reader needs none of it but the bound that it sets to blocks.
struct Encoding {
  std::uint32_t block_bytes =
      64u << 10;  // 4 KiB .. 128 MiB, power of two: pages compressed together
  base::Codec codec = base::Codec::zstd;
  std::uint8_t codec_level = 1;
  bool grow_blocks =
      true;             // where pages compress to little, blocks may grow to kMaxGrownBlockBytes
  bool filters = true;  // a block may take a filtered form of the codec
  bool dedup = true;    // a page may refer to a block that has the same content already
  bool deltas = true;   // a page may be stored as what changed in it
  bool operator==(const Encoding&) const = default;
};

inline constexpr std::uint32_t kMaxGrownBlockBytes = 1u << 20;
// Of a block of pages, raw; whether blocks grow does not matter, since a branch may decide for
// itself.
constexpr std::uint32_t max_block_bytes(const Encoding& e) noexcept {
  return e.block_bytes > kMaxGrownBlockBytes ? e.block_bytes : kMaxGrownBlockBytes;
}

struct Superblock : Encoding {
  Uuid store_id{};
  std::int64_t created_ns = 0;
  std::uint64_t pack_bytes = 256ULL << 20;  // a pack is sealed when it has grown past this
  std::uint32_t journal_half_bytes = 2u << 20;
  bool operator==(const Superblock&) const = default;
};

std::vector<std::byte> encode_superblock(const Superblock& sb);

enum class SuperblockStatus { ok, not_a_store, newer_format, damaged };
// Every field of `out` is range-checked when the status is ok.
SuperblockStatus decode_superblock(std::span<const std::byte> bytes, Superblock& out) noexcept;

// The seed of every checksum in the store: a record that strays in from another store does not
// verify.
std::uint64_t checksum_seed(const Uuid& store_id) noexcept;

// A branch or snapshot name: 1..kMaxNameBytes bytes of [A-Za-z0-9._+-] or UTF-8 beyond ASCII, not
// starting with '.' or '-', without '/', control characters or spaces. Returns nullptr when good,
// otherwise what is wrong with it.
const char* name_problem(std::string_view name) noexcept;

}  // namespace vellum::format
