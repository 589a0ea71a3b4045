#include "store/gc/tier/tiers.hpp"

#include <algorithm>
#include <cassert>
#include <random>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "base/files/real_path.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/pack_mover.hpp"
#include "store/packs/former_file.hpp"
#include "store/packs/header_error.hpp"

namespace vellum::store {

using format::TierDirectory;
using format::TierId;
using format::TierKind;
using format::Tiers;

namespace {

format::Uuid random_id() {
  std::random_device device;
  format::Uuid id;
  for (auto& b : id) b = static_cast<std::byte>(device());
  return id;
}

// The tiers in the file. REQUIRES: the lock of gc, if the caller changes them.
Tiers read_tiers(StoreDirectory& store) {
  const auto state = store.packs().places().reload();
  if (!state->problem.empty()) {
    fail(state->code, "{}. Remove the file to add the directories again", state->problem);
  }
  return state->tiers;
}

void publish(StoreDirectory& store, const Tiers& tiers) {
  base::publish_file(store.fs(), store.tmp_directory(), store.path(), kTiersName,
                     format::encode_tiers(tiers, store.file_seal()), true);
  store.packs().places().reload();
}

// Whether the directory has no files except unfinished tier ids of a crash.
bool is_free(base::Fs& fs, const std::string& path) {
  const auto entries = fs.list(path);
  return std::all_of(entries.begin(), entries.end(), [](const base::DirEntry& e) {
    return e.is_regular_file && e.name.starts_with(kTierIdName);
  });
}

// Returns the directory's tier id, or a new one, after making this store its owner. Creates the
// directory if it is missing. `before`: the tier with this path until now, or null. A cache without
// an id gets the id of `before`: machines that share the store may each have a cache with the same
// path.
TierId identify_directory(StoreDirectory& store, TierKind kind, const std::string& path,
                          const TierDirectory* before) {
  assert(before == nullptr || before->kind == kind);
  base::Fs& fs = store.fs();
  const auto& id = store.superblock().store_id;
  const format::TierOwner owner = store.packs().places().owner();
  const std::string file = path + "/" + kTierIdName;
  if (kind == TierKind::archive && before != nullptr && !fs.exists(file)) {
    fail(Errc::io, "{}: is not the archive that was here; the packs of that one are missing", path);
  }
  if (!fs.exists(path)) {
    fs.make_directory(path);
    fs.sync_directory(base::parent_of(path));
  }
  TierId tier;
  if (fs.exists(file)) {
    const auto bytes = base::read_whole(fs, file, format::kMaxTierIdBytes);
    if (const char* problem = format::decode_tier_id(bytes, id, tier)) {
      if (format::is_newer(bytes, format::checksum_seed(id))) fail_newer(file, bytes);
      fail(Errc::already_exists, "{}: {}", file, problem);
    }
    if (tier.kind != kind) {
      fail(Errc::already_exists, "{}: the directory is a tier of another kind", path);
    }
    if (tier.owner == owner) return tier;
  } else if (is_free(fs, path)) {
    tier = {kind, before != nullptr ? before->id : random_id(), {}};
  } else {
    fail(Errc::already_exists, "{}: exists and is not an empty directory", path);
  }
  tier.owner = owner;
  base::publish_file(fs, path, path, kTierIdName, format::encode_tier_id(tier, id), true);
  return tier;
}

// gc would no longer find their pins.
void require_no_former_files(StoreDirectory& store, const std::string& archive) {
  const PackPlaces& places = store.packs().places();
  const NamesExclusive names(store);
  remove_former_files(store.fs(), places);
  for (const FormerFile& former : former_files(store.fs(), places)) {
    if (base::parent_of(former.path) != archive) continue;
    fail(Errc::busy, "{}: a process has a version open in this file: close it", former.path);
  }
}

TierDirectory& find_tier(StoreDirectory& store, Tiers& tiers, const std::string& path) {
  const auto at = std::find_if(tiers.directories.begin(), tiers.directories.end(),
                               [&](const TierDirectory& d) { return d.path == path; });
  if (at != tiers.directories.end()) return *at;
  fail(Errc::not_found, "{}: is not a tier of {}", path, store.path());
}

void require_path(StoreDirectory& store, const std::string& path) {
  if (const char* problem = format::tier_path_problem(path)) {
    fail(Errc::invalid_argument, "{}: {}", path, problem);
  }
  const std::string packs = store.packs().places().real_home() + "/packs/";
  if ((base::real_path(path) + "/").starts_with(packs)) {
    fail(Errc::invalid_argument, "{}: is inside the store's own directory of packs", path);
  }
}

}  // namespace

TierUse use_of_directory(StoreDirectory& store, const std::string& directory) {
  TierUse use;
  for (const std::uint64_t pack : store.packs().places().list_in(directory)) {
    try {
      const auto file =
          store.fs().open(directory + "/" + pack_file_name(pack), base::OpenMode::read_only);
      use.bytes += file->allocated_bytes();
      ++use.packs;
    } catch (const Error& e) {
      // The file has just been removed, or is no pack.
      if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
    }
  }
  return use;
}

std::vector<Tier> list_tiers(StoreDirectory& store) {
  const Tiers tiers = read_tiers(store);
  const auto state = store.packs().places().state();
  assert(state->present.size() == state->tiers.directories.size());
  const TierUse home = use_of_directory(store, store.packs_directory());
  std::vector<Tier> out;
  out.push_back({Tier::Kind::home, store.packs_directory(), true, true, home.packs, home.bytes,
                 tiers.home_limit_bytes});
  for (std::size_t i = 0; i < state->tiers.directories.size(); ++i) {
    const TierDirectory& directory = state->tiers.directories[i];
    const bool present = state->present[i];
    const bool writable = present && state->owners[i].is(store.packs().places().owner());
    const TierUse use = present ? use_of_directory(store, directory.path) : TierUse();
    out.push_back({directory.kind == TierKind::archive ? Tier::Kind::archive : Tier::Kind::cache,
                   directory.path, present, writable, use.packs, use.bytes, directory.limit_bytes});
  }
  return out;
}

void add_tier(StoreDirectory& store, TierKind kind, const std::string& path,
              std::uint64_t limit_bytes) {
  require_path(store, path);
  const GcExclusive gc(store);
  Tiers tiers = read_tiers(store);
  auto& list = tiers.directories;
  const auto same_path = [&](const TierDirectory& d) { return d.path == path; };
  const auto before = std::find_if(list.begin(), list.end(), same_path);
  if (before != list.end() && before->kind != kind) {
    fail(Errc::already_exists, "{}: the directory is a tier of another kind", path);
  }
  if (before == list.end() && list.size() >= format::kMaxTierDirectories) {
    fail(Errc::invalid_argument, "{}: has {} tiers, the maximum", store.path(), list.size());
  }
  const TierId tier =
      identify_directory(store, kind, path, before == list.end() ? nullptr : &*before);
  // A listed tier may have a new path.
  const auto same_id = std::find_if(list.begin(), list.end(),
                                    [&](const TierDirectory& d) { return d.id == tier.id; });
  const TierDirectory now{kind, tier.id, limit_bytes, path};
  const bool same = before != list.end() && same_id == before;
  if (before != list.end() && !same && kind == TierKind::archive) {
    fail(Errc::io, "{}: is not the archive that was here; the packs of that one are missing", path);
  }
  if (same_id != list.end()) {
    *same_id = now;
    if (before != list.end() && !same) list.erase(before);
  } else if (before != list.end()) {
    *before = now;
  } else {
    list.push_back(now);
  }
  assert(list.size() <= format::kMaxTierDirectories);
  publish(store, tiers);
}

void remove_tier(StoreDirectory& store, const std::string& path) {
  const GcExclusive gc(store);
  Tiers tiers = read_tiers(store);
  TierDirectory& tier = find_tier(store, tiers, path);
  const TierKind kind = tier.kind;
  const auto contains = [&](const std::vector<std::string>& paths) {
    return std::find(paths.begin(), paths.end(), path) != paths.end();
  };
  const PackPlaces& places = store.packs().places();
  const bool present = contains(places.state()->present_paths(kind));
  const bool ours = contains(places.state()->owned_paths(kind, places.owner()));
  if (kind == TierKind::archive) {
    if (!present) {
      fail(Errc::io, "{}: the archive is missing or belongs to another store; it may hold packs",
           path);
    }
    store.packs().places().require_owned();
    remove_leftovers(store, gc);
    const TierUse use = use_of_directory(store, path);
    if (use.packs != 0) fail(Errc::busy, "{}: the archive holds {} packs", path, use.packs);
    require_no_former_files(store, path);
  }
  const auto kept = [&](const TierDirectory& d) { return d.path == path; };
  tiers.directories.erase(std::find_if(tiers.directories.begin(), tiers.directories.end(), kept));
  publish(store, tiers);
  if (!ours) return;
  for (const auto& entry : store.fs().list(path)) {
    std::uint64_t pack = 0;
    const bool known = parse_pack_file_name(entry.name, pack) || is_copy_file_name(entry.name) ||
                       entry.name == kTierIdName;
    if (known) base::unlink_quietly(store.fs(), path + "/" + entry.name);
  }
}

void limit_home(StoreDirectory& store, std::uint64_t bytes) {
  const GcExclusive gc(store);
  Tiers tiers = read_tiers(store);
  tiers.home_limit_bytes = bytes;
  publish(store, tiers);
}

void limit_cache(StoreDirectory& store, const std::string& path, std::uint64_t bytes) {
  const GcExclusive gc(store);
  Tiers tiers = read_tiers(store);
  TierDirectory& tier = find_tier(store, tiers, path);
  if (tier.kind != TierKind::cache) {
    fail(Errc::invalid_argument, "{}: an archive has no limit", path);
  }
  tier.limit_bytes = bytes;
  publish(store, tiers);
}

}  // namespace vellum::store
