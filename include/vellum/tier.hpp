// vellum/tier.hpp: the directories that hold packs of a store, and moves between them.
#ifndef VELLUM_TIER_HPP
#define VELLUM_TIER_HPP

#include <cstdint>
#include <optional>
#include <string>

namespace vellum {

// A directory that holds packs of a store.
//
// Packs are written to the store itself, their home. An archive is for cold packs: large, durable
// like the store, perhaps slow; a pack is either at home or in an archive. A cache is fast and
// holds copies. It may be lost at any time with all its content; nothing depends on it. A missing
// cache, as on another machine, is not used.
struct Tier {
  enum class Kind { home, archive, cache };
  Kind kind = Kind::home;
  std::string directory;
  // Whether the directory exists and has this tier's id. If an archive is absent, versions with
  // packs in it do not open (Errc::io, which names it), and no garbage is collected.
  bool present = true;
  // Whether its tier id names this store: its path, and the inode and birth time of its
  // `vellum.store`. False in a copy of a store, also under the same path in another container or on
  // another machine. A copy may read the original's tiers, but gc and moves throw Errc::read_only.
  // Adding the directory again takes it over.
  bool writable = true;
  std::uint64_t packs = 0, bytes = 0;  // on the medium; known when it is present
  std::uint64_t limit_bytes = 0;       // for Store::apply_tiers(); 0: none
};

// Store::move_packs().
struct TierMove {
  bool to_archive = true;  // else home
  // A size of home. To the archive: only until packs at home occupy no more than this. To home:
  // only while they occupy no more.
  std::optional<std::uint64_t> home_bytes;
  // To the archive: not packs that a branch's head or one of the newest N snapshots needs to open.
  std::uint64_t keep_last = 0;
  bool dry_run = false;
};

}  // namespace vellum

#endif  // VELLUM_TIER_HPP
