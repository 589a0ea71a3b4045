// format/tiers.hpp: the directories besides `packs` that hold a store's packs or copies of them.
//
// The file `vellum.tiers` in the store lists them. Each directory has a file `vellum.tier`, which
// names its owner. An empty mount point has no such file, and is thus recognized.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMaxTierDirectories = 16;
inline constexpr std::uint32_t kMaxTierPathBytes = 4096;
inline constexpr std::size_t kMaxTiersBytes = 128u << 10;
inline constexpr std::size_t kTierIdHeaderBytes = 64;
inline constexpr std::size_t kMaxTierIdBytes = 8u << 10;

enum class TierKind : std::uint8_t {
  archive = 1,  // holds packs in place of the store's own directory
  cache = 2,    // holds copies of packs, which may vanish at any time
};

struct TierDirectory {
  TierKind kind = TierKind::archive;
  Uuid id{};                      // random; also in the directory's own file
  std::uint64_t limit_bytes = 0;  // of a cache's copies; 0: no limit
  std::string path;               // absolute
  bool operator==(const TierDirectory&) const = default;
};

struct Tiers {
  std::uint64_t home_limit_bytes = 0;  // of packs in the store; 0: no limit
  std::vector<TierDirectory> directories;
  bool operator==(const Tiers&) const = default;
};

// The store that may change a directory's content. A copy of the store, with the same id, may only
// read the content. A copy in another container or on another machine can even have the same path.
struct TierOwner {
  std::string home;          // real path of the store
  std::uint64_t inode = 0;   // of its `vellum.store`; a copy differs in the path or the inode
  std::int64_t born_ns = 0;  // its time of birth; 0: the file system does not record it
  bool operator==(const TierOwner&) const = default;
  bool is(const TierOwner& other) const noexcept {
    const bool same_birth = born_ns == other.born_ns || born_ns == 0 || other.born_ns == 0;
    return home == other.home && inode == other.inode && same_birth;
  }
};

// The content of the file `vellum.tier` in a directory.
struct TierId {
  TierKind kind = TierKind::archive;
  Uuid id{};
  TierOwner owner;  // the store, when the directory was added
  bool operator==(const TierId&) const = default;
};

// nullptr if a tier may have this path, otherwise a description of the error.
const char* tier_path_problem(const std::string& path) noexcept;

std::vector<std::byte> encode_tiers(const Tiers& tiers, const FileSeal& seal);
// nullptr, or a description of the error; then `out` is unchanged.
const char* decode_tiers(std::span<const std::byte> bytes, const FileSeal& seal, Tiers& out);

std::vector<std::byte> encode_tier_id(const TierId& tier, const Uuid& store_id);
const char* decode_tier_id(std::span<const std::byte> bytes, const Uuid& store_id, TierId& out);

}  // namespace vellum::format
