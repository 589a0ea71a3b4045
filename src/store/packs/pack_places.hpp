// store/packs/pack_places.hpp: the directories that contain packs.
//
// Packs are written to `packs` in the store, their home. Some packs are in an archive directory,
// and caches have copies of some (docs/decisions/tiers.md). If a pack is both at home and in an
// archive, the one at home is valid: the other is left over from an interrupted move.
//
// A tier's directory is present if it has the id of a tier of this store; an empty mount point has
// none. A process with an open store notices changes to the tiers by itself: if it does not find a
// pack, it reads the list of tiers again and repeats the search.
//
// Threads: all calls from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "format/tiers.hpp"
#include "vellum/error.hpp"

namespace vellum::store {

std::string pack_file_name(std::uint64_t pack);  // "0123456789abcdef.pack"
bool parse_pack_file_name(const std::string& name, std::uint64_t& pack);

inline constexpr const char* kTiersName = "vellum.tiers";
inline constexpr const char* kTierIdName = "vellum.tier";

// The tiers at one time.
struct TierState {
  format::Tiers tiers;
  std::vector<bool> present;              // by directory: whether it has the tier's id
  std::vector<format::TierOwner> owners;  // by directory: the owner that its tier id names
  std::string problem;   // the reason why the list of tiers cannot be read, or empty
  Errc code = Errc::ok;  // the error code of `problem`

  std::vector<std::string> present_paths(format::TierKind kind) const;
  // The present directories that this store may write to.
  std::vector<std::string> owned_paths(format::TierKind kind, const format::TierOwner& store) const;
  // The archive directories that are absent.
  std::vector<std::string> missing_archives() const;
};

class PackPlaces {
 public:
  PackPlaces(base::Fs& fs, std::string store_path, const format::FileSeal& seal);

  // The state as last read. The first call reads it.
  std::shared_ptr<const TierState> state() const;
  // Reads the state again.
  std::shared_ptr<const TierState> reload() const;

  const std::string& home() const noexcept { return home_; }
  std::string home_path(std::uint64_t pack) const;
  // The current path of the pack; home_path() if no directory has it.
  std::string path_of(std::uint64_t pack) const;
  // Opens the pack. Errc::corrupted: it is missing; io: it may be in an archive that is absent.
  std::unique_ptr<base::File> open(std::uint64_t pack) const;
  bool is_home(const base::File& file) const;
  // Every pack of the store, ascending. Throws if some packs may be invisible, since gc must not
  // take them for removed.
  std::vector<std::uint64_t> list() const;
  // The same, for the visible packs.
  std::vector<std::uint64_t> list_found() const;
  // Every pack file in one directory, ascending.
  std::vector<std::uint64_t> list_in(const std::string& directory) const;
  // Reads the list of tiers again. Throws if the list or an archive is invisible.
  void require_all() const;
  // The same, and Errc::read_only if an archive belongs to a store of which this one is a copy.
  void require_owned() const;
  // The caches that are present and belong to this store.
  std::vector<std::string> owned_caches() const;
  // The store's path in its canonical spelling.
  std::string real_home() const;
  // This store as the ids of its tiers name it.
  format::TierOwner owner() const;

 private:
  std::shared_ptr<const TierState> read() const;
  bool is_present(const format::TierDirectory& tier, format::TierOwner& owner) const;
  [[noreturn]] void fail_missing(std::uint64_t pack) const;

  base::Fs& fs_;
  std::string store_path_, home_;
  format::Uuid store_id_;
  format::FileSeal seal_;
  mutable std::mutex mutex_;  // guards the member below
  mutable std::shared_ptr<const TierState> state_;
};

}  // namespace vellum::store
