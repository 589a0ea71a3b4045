// store/pack/pack_places.hpp: in which directory a pack lies.
//
// Packs are written to `packs` in the store, their home; some may have been moved to an archive
// directory, and caches may hold copies of some (docs/decisions/tiers.md). A pack that is at home
// and in an archive, too, is the one at home: the other is what a move that was cut off has left.
//
// A tier's directory is there when it has the store's mark; an empty mount point has not. Who opens
// a store need not know that its tiers change: what is not found is looked for again with the list
// of tiers as it is then.
//
// Threads: all calls from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "format/tiers.hpp"
#include "vellum/error.hpp"

namespace vellum::store {

std::string pack_file_name(std::uint64_t pack);  // "0123456789abcdef.pack"
bool parse_pack_file_name(const std::string& name, std::uint64_t& pack);

inline constexpr const char* kTiersName = "vellum.tiers";
inline constexpr const char* kTierMarkName = "vellum.tier";

// As of one moment.
struct TierState {
  format::Tiers tiers;
  std::vector<bool> present;              // by directory: it has the store's mark
  std::vector<format::TierOwner> owners;  // of a present one: whom its mark names
  std::string problem;                    // why the list of tiers cannot be read; empty: it can
  Errc code = Errc::ok;                   // of that

  std::vector<std::string> present_paths(format::TierKind kind) const;
  // Of these, the ones that this store may write to.
  std::vector<std::string> owned_paths(format::TierKind kind, const format::TierOwner& store) const;
  // The archive directories that are not there.
  std::vector<std::string> missing_archives() const;
};

class PackPlaces {
 public:
  PackPlaces(base::Fs& fs, std::string store_path, const format::Uuid& store_id);

  // As last read; reads it when nobody has.
  std::shared_ptr<const TierState> state() const;
  // Reads it again.
  std::shared_ptr<const TierState> reload() const;

  const std::string& home() const noexcept { return home_; }
  std::string home_path(std::uint64_t pack) const;
  // Where the pack lies now; home_path() when it lies nowhere.
  std::string path_of(std::uint64_t pack) const;
  // Opens it there. Errc::damaged: it is missing; io: it may be in an archive that is not there.
  std::unique_ptr<base::File> open(std::uint64_t pack) const;
  bool is_home(const base::File& file) const;
  // Every pack of the store, ascending. Throws when some may be where nobody can look: gc must not
  // take them for gone.
  std::vector<std::uint64_t> list() const;
  // The same of those that can be seen.
  std::vector<std::uint64_t> list_found() const;
  // Every pack file in one directory, ascending.
  std::vector<std::uint64_t> list_in(const std::string& directory) const;
  // Throws when the list of tiers or an archive cannot be seen; reads it again before.
  void require_all() const;
  // The same; and Errc::read_only when an archive is that of a store of which this is a copy.
  void require_owned() const;
  // The caches that are there and this store's own.
  std::vector<std::string> owned_caches() const;
  // The store's path in one spelling.
  std::string real_home() const;
  // As marks of tiers name this store.
  format::TierOwner owner() const;

 private:
  std::shared_ptr<const TierState> read() const;
  bool is_present(const format::TierDirectory& tier, format::TierOwner& owner) const;
  [[noreturn]] void fail_missing(std::uint64_t pack) const;

  base::Fs& fs_;
  std::string store_path_, home_;
  format::Uuid store_id_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::shared_ptr<const TierState> state_;
};

}  // namespace vellum::store
