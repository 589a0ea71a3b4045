// format/tiers.hpp: which directories besides `packs` hold packs of a store, or copies of them.
//
// The file `vellum.tiers` in the store lists them; each of them has a file of its own,
// `vellum.tier`, that says whose it is: the directory under an empty mount point has none.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/types.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMaxTierDirectories = 16;
inline constexpr std::uint32_t kMaxTierPathBytes = 4096;
inline constexpr std::size_t kMaxTiersBytes = 128u << 10;
inline constexpr std::size_t kTierMarkHeaderBytes = 48;
inline constexpr std::size_t kMaxTierMarkBytes = 8u << 10;

enum class TierKind : std::uint8_t {
  archive = 1,  // packs lie there in place of the store
  cache = 2,    // copies of packs, which may be gone any time
};

struct TierDirectory {
  TierKind kind = TierKind::archive;
  Uuid id{};                      // random; also in the directory's own file
  std::uint64_t limit_bytes = 0;  // of a cache, what its copies may take; 0: no limit
  std::string path;               // absolute
  bool operator==(const TierDirectory&) const = default;
};

struct Tiers {
  std::uint64_t home_limit_bytes = 0;  // what packs in the store may take; 0: no limit
  std::vector<TierDirectory> directories;
  bool operator==(const Tiers&) const = default;
};

// What the file `vellum.tier` in a directory says.
struct TierMark {
  TierKind kind = TierKind::archive;
  Uuid id{};
  // Where the store was when the directory was added: a copy of the store elsewhere may read what
  // is there, but has to leave it alone.
  std::string home;
  bool operator==(const TierMark&) const = default;
};

// nullptr when it may be a tier's path, otherwise what is wrong with it.
const char* tier_path_problem(const std::string& path) noexcept;

std::vector<std::byte> encode_tiers(const Tiers& tiers, const Uuid& store_id);
// nullptr, or what is wrong; `out` is unchanged then.
const char* decode_tiers(std::span<const std::byte> bytes, const Uuid& store_id, Tiers& out);

std::vector<std::byte> encode_tier_mark(const TierMark& mark, const Uuid& store_id);
const char* decode_tier_mark(std::span<const std::byte> bytes, const Uuid& store_id, TierMark& out);

}  // namespace vellum::format
