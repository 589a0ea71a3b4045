#include "store/gc/pack_mover.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "base/files/new_file.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/pack_rewriter.hpp"

namespace vellum::store {

using format::TierKind;

namespace {

// This process may have the pack open.
void refresh_if_open(StoreDirectory& store, std::uint64_t pack) {
  if (store.packs().find(pack) != nullptr) store.packs().refresh(pack);
}

}  // namespace

bool move_to_archive(StoreDirectory& store, const GcExclusive& /*gc*/, std::uint64_t pack,
                     const std::string& archive, const CopyProgress& progress) {
  base::Fs& fs = store.fs();
  const std::string home = store.packs().places().home_path(pack);
  const std::string target = archive + "/" + pack_file_name(pack);
  const std::string copy = archive + "/" + copy_file_name(pack);
  const auto from = fs.open(home, base::OpenMode::read_only);
  if (!from->pinned_bytes().empty()) return false;
  copy_pack_file(fs, *from, copy, progress);
  fs.rename(copy, target);
  fs.sync_directory(archive);
  {
    const NamesExclusive names(store);
    if (!from->pinned_bytes().empty()) {
      base::unlink_quietly(fs, target);
      return false;
    }
    fs.unlink(home);
  }
  refresh_if_open(store, pack);
  fs.sync_directory(store.packs_directory());
  return true;
}

bool move_home(StoreDirectory& store, const GcExclusive& /*gc*/, std::uint64_t pack,
               const CopyProgress& progress) {
  base::Fs& fs = store.fs();
  const std::string home = store.packs().places().home_path(pack);
  const std::string copy = store.tmp_directory() + "/" + copy_file_name(pack);
  const std::string old = store.packs().path_of(pack);
  const auto from = fs.open(old, base::OpenMode::read_only);
  if (!from->pinned_bytes().empty()) return false;
  copy_pack_file(fs, *from, copy, progress);
  {
    const NamesExclusive names(store);
    if (!from->pinned_bytes().empty()) {
      base::unlink_quietly(fs, copy);
      return false;
    }
    fs.rename(copy, home);
  }
  refresh_if_open(store, pack);
  fs.sync_directory(store.packs_directory());
  fs.unlink(old);
  fs.sync_directory(base::parent_of(old));
  return true;
}

bool is_copy_current(StoreDirectory& store, std::uint64_t pack, const std::string& cache) {
  try {
    const auto file = store.packs().places().open(pack);
    const auto copy =
        store.fs().open(cache + "/" + pack_file_name(pack), base::OpenMode::read_only);
    std::array<std::byte, format::kPackHeaderBytes> now, then;
    file->pread(now, 0);
    copy->pread(then, 0);
    return now == then && file->size_bytes() == copy->size_bytes();
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return false;
  }
}

void copy_to_cache(StoreDirectory& store, const GcExclusive& /*gc*/, std::uint64_t pack,
                   const std::string& cache, const CopyProgress& progress) {
  const std::string copy = cache + "/" + copy_file_name(pack);
  copy_pack_file(store.fs(), *store.packs().places().open(pack), copy, progress);
  store.fs().rename(copy, cache + "/" + pack_file_name(pack));
}

std::uint64_t remove_stale_copies(StoreDirectory& store, const GcExclusive& /*gc*/) {
  std::uint64_t removed = 0;
  const PackPlaces& places = store.packs().places();
  for (const std::string& cache : places.owned_caches()) {
    try {
      for (const std::uint64_t pack : places.list_in(cache)) {
        if (is_copy_current(store, pack, cache)) continue;
        store.fs().unlink(cache + "/" + pack_file_name(pack));
        ++removed;
      }
    } catch (const Error& e) {
      if (e.code() == Errc::out_of_memory) throw;  // else: the cache has vanished
    }
  }
  return removed;
}

void remove_leftovers(StoreDirectory& store, const GcExclusive& gc) {
  base::Fs& fs = store.fs();
  const PackPlaces& places = store.packs().places();
  const auto tiers = places.reload();
  const auto sweep = [&](const std::string& directory) {
    for (const auto& entry : fs.list(directory)) {
      const bool ours = is_copy_file_name(entry.name) || is_rewritten_file_name(entry.name);
      if (entry.is_regular_file && ours) fs.unlink(directory + "/" + entry.name);
    }
  };
  remove_unfinished(store, gc);
  for (const std::string& cache : places.owned_caches()) {
    try {
      sweep(cache);
    } catch (const Error& e) {
      if (e.code() == Errc::out_of_memory) throw;  // else: the cache has vanished
    }
  }
  for (const std::string& archive : tiers->present_paths(TierKind::archive)) {
    sweep(archive);
    bool any = false;
    for (const std::uint64_t pack : places.list_in(archive)) {
      if (!fs.exists(places.home_path(pack))) continue;
      if (!any) fs.sync_directory(places.home());  // the name there may not be durable yet
      fs.unlink(archive + "/" + pack_file_name(pack));
      any = true;
    }
    if (any) fs.sync_directory(archive);
  }
}

}  // namespace vellum::store
