#include "store/packs/pack_places.hpp"

#include <algorithm>
#include <cassert>
#include <set>

#include "base/fail.hpp"
#include "base/files/real_path.hpp"
#include "format/wire/superblock.hpp"
#include "store/packs/header_error.hpp"

namespace vellum::store {

using format::TierKind;

namespace {

constexpr std::string_view kPackSuffix = ".pack";
constexpr std::size_t kHexDigits = 16;
// A pack may move from one directory to another during the search, but not three times.
constexpr int kSearches = 3;

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

std::string pack_file_name(std::uint64_t pack) {
  return fmt::format("{:016x}{}", pack, kPackSuffix);
}

bool parse_pack_file_name(const std::string& name, std::uint64_t& pack) {
  if (name.size() != kHexDigits + kPackSuffix.size() || !name.ends_with(kPackSuffix)) return false;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kHexDigits; ++i) {
    const int digit = hex_value(name[i]);
    if (digit < 0) return false;
    value = value << 4 | static_cast<std::uint64_t>(digit);
  }
  pack = value;
  return true;
}

std::vector<std::string> TierState::present_paths(TierKind kind) const {
  assert(present.size() == tiers.directories.size());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (present[i] && tiers.directories[i].kind == kind) out.push_back(tiers.directories[i].path);
  }
  return out;
}

std::vector<std::string> TierState::owned_paths(TierKind kind,
                                                const format::TierOwner& store) const {
  assert(present.size() == tiers.directories.size() && owners.size() == present.size());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < present.size(); ++i) {
    const bool ours = present[i] && owners[i].is(store);
    if (ours && tiers.directories[i].kind == kind) out.push_back(tiers.directories[i].path);
  }
  return out;
}

std::vector<std::string> TierState::missing_archives() const {
  assert(present.size() == tiers.directories.size());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < present.size(); ++i) {
    const bool archive = tiers.directories[i].kind == TierKind::archive;
    if (!present[i] && archive) out.push_back(tiers.directories[i].path);
  }
  return out;
}

PackPlaces::PackPlaces(base::Fs& fs, std::string store_path, const format::FileSeal& seal)
    : fs_(fs),
      store_path_(std::move(store_path)),
      home_(store_path_ + "/packs"),
      store_id_(seal.store_id),
      seal_(seal) {
  assert(!store_path_.empty());
}

bool PackPlaces::is_present(const format::TierDirectory& tier, format::TierOwner& owner) const {
  if (base::real_path(tier.path) == real_home() + "/packs") return false;  // forged
  try {
    const auto bytes =
        base::read_whole(fs_, tier.path + "/" + kTierIdName, format::kMaxTierIdBytes);
    format::TierId found;
    if (format::decode_tier_id(bytes, store_id_, found) != nullptr) return false;
    owner = found.owner;
    return found.kind == tier.kind && found.id == tier.id;
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return false;
  }
}

std::shared_ptr<const TierState> PackPlaces::read() const {
  auto out = std::make_shared<TierState>();
  const std::string file = store_path_ + "/" + kTiersName;
  try {
    const auto bytes = base::read_whole(fs_, file, format::kMaxTiersBytes);
    if (const char* problem = format::decode_tiers(bytes, seal_, out->tiers)) {
      if (format::is_newer(bytes, format::checksum_seed(store_id_))) fail_newer(file, bytes);
      out->code = Errc::corrupted;
      out->problem =
          fmt::format("{}: {}; packs may be in archives that it would name", file, problem);
    }
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    if (e.code() != Errc::not_found) {
      out->code = e.code();
      out->problem = e.what();
    }
  }
  for (const auto& tier : out->tiers.directories) {
    out->present.push_back(is_present(tier, out->owners.emplace_back()));
  }
  return out;
}

std::shared_ptr<const TierState> PackPlaces::state() const {
  {
    const std::lock_guard guard(mutex_);
    if (state_ != nullptr) return state_;
  }
  return reload();
}

std::shared_ptr<const TierState> PackPlaces::reload() const {
  auto fresh = read();
  const std::lock_guard guard(mutex_);
  assert(fresh != nullptr);
  state_ = fresh;
  return fresh;
}

std::string PackPlaces::home_path(std::uint64_t pack) const {
  return home_ + "/" + pack_file_name(pack);
}

std::string PackPlaces::real_home() const { return base::real_path(store_path_); }

// The identity is that of the superblock: no command replaces it, and a copy has another one.
format::TierOwner PackPlaces::owner() const {
  const auto file = fs_.open(store_path_ + "/vellum.store", base::OpenMode::read_only);
  const base::FileIdentity identity = file->identity();
  return {real_home(), identity.inode, identity.born_ns};
}

bool PackPlaces::is_home(const base::File& file) const {
  return file.path().starts_with(home_ + "/");
}

std::string PackPlaces::path_of(std::uint64_t pack) const {
  std::string at_home = home_path(pack);
  auto tiers = state();
  for (int search = 0; search < kSearches; ++search) {
    if (fs_.exists(at_home)) return at_home;
    for (const std::string& directory : tiers->present_paths(TierKind::archive)) {
      const std::string path = directory + "/" + pack_file_name(pack);
      if (fs_.exists(path)) return path;
    }
    tiers = reload();
  }
  return at_home;
}

std::unique_ptr<base::File> PackPlaces::open(std::uint64_t pack) const {
  const auto open_in = [&](const std::string& directory) -> std::unique_ptr<base::File> {
    try {
      return fs_.open(directory + "/" + pack_file_name(pack), base::OpenMode::read_only);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
      return nullptr;
    }
  };
  auto tiers = state();
  for (int search = 0; search < kSearches; ++search) {
    if (auto file = open_in(home_)) return file;
    for (const std::string& directory : tiers->present_paths(TierKind::archive)) {
      if (auto file = open_in(directory)) return file;
    }
    tiers = reload();
  }
  fail_missing(pack);
}

void PackPlaces::fail_missing(std::uint64_t pack) const {
  const auto tiers = state();
  const std::string path = home_path(pack);
  if (!tiers->problem.empty()) {
    fail(tiers->code, "{}: the pack is not in the store, and {}", path, tiers->problem);
  }
  const auto missing = tiers->missing_archives();
  if (!missing.empty()) {
    fail(Errc::io,
         "{}: the pack is not in the store, and archive {} is missing, or is not this store's",
         path, joined(missing));
  }
  fail(Errc::corrupted, "{}: the pack is missing", path);
}

void PackPlaces::require_all() const {
  const auto tiers = reload();
  if (!tiers->problem.empty()) {
    fail(tiers->code, "{}", tiers->problem);
  }
  const auto missing = tiers->missing_archives();
  if (missing.empty()) return;
  fail(Errc::io, "{}: archive {} is missing, or is not this store's", store_path_, joined(missing));
}

void PackPlaces::require_owned() const {
  require_all();
  const auto tiers = state();
  if (tiers->owners.empty()) return;
  const format::TierOwner us = owner();
  assert(tiers->owners.size() == tiers->tiers.directories.size());
  for (std::size_t i = 0; i < tiers->owners.size(); ++i) {
    const auto& tier = tiers->tiers.directories[i];
    const format::TierOwner& theirs = tiers->owners[i];
    if (tier.kind != TierKind::archive || theirs.is(us)) continue;
    const bool moved = theirs.home != us.home;
    fail(Errc::read_only,
         "{}: the archive belongs to {}. If that store no longer exists, or is now {}, take the "
         "archive over: add it again. If this store is a copy of it, give it a copy of the archive",
         tier.path,
         moved ? "the store at " + theirs.home : "another store, created at " + theirs.home,
         us.home);
  }
}

std::vector<std::string> PackPlaces::owned_caches() const {
  const auto tiers = state();
  if (tiers->owners.empty()) return {};
  return tiers->owned_paths(TierKind::cache, owner());
}

std::vector<std::uint64_t> PackPlaces::list_in(const std::string& directory) const {
  std::vector<std::uint64_t> out;
  for (const base::DirEntry& entry : fs_.list(directory)) {
    std::uint64_t pack = 0;
    if (parse_pack_file_name(entry.name, pack)) out.push_back(pack);
  }
  assert(std::ranges::is_sorted(out));
  return out;  // hexadecimal names sort like their numbers
}

std::vector<std::uint64_t> PackPlaces::list() const {
  require_all();
  return list_found();
}

std::vector<std::uint64_t> PackPlaces::list_found() const {
  const auto archives = state()->present_paths(TierKind::archive);
  if (archives.empty()) return list_in(home_);
  std::set<std::uint64_t> found;
  const auto add = [&](const std::string& directory) {
    const auto packs = list_in(directory);
    found.insert(packs.begin(), packs.end());
  };
  // Home is listed first and last: a pack that moves meanwhile, in either direction, is found.
  add(home_);
  for (const std::string& directory : archives) add(directory);
  add(home_);
  return {found.begin(), found.end()};
}

}  // namespace vellum::store
