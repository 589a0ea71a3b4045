// interfaces/privateer/impl.cpp: opens, creates and keeps versions through Vellum's public
// interface.
#include "interfaces/privateer/impl.hpp"

#include <cassert>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "interfaces/privateer/settings.hpp"

using vellum::Errc;
using vellum::Region;
using vellum::RegionOptions;
using vellum::Store;
namespace privateer = vellum::privateer;

namespace {

// Above this, address space for growth to four times the size would be too large a part of all.
constexpr std::uint64_t kMaxWithRoom = 1ULL << 40;

std::string absolute(const std::string& path) { return std::filesystem::absolute(path); }

// The address and the memory limit of a region.
RegionOptions mapping(void* addr, std::uint64_t size_bytes, std::uint64_t block_bytes,
                      const std::string& stash) {
  RegionOptions options;
  options.memory_limit_bytes = privateer::memory_limit_bytes(block_bytes);
  options.spill_directory = stash;
  if (size_bytes > kMaxWithRoom) options.capacity_bytes = size_bytes;
  if (addr == nullptr) return options;
  options.over_reservation = true;
  options.base_address = reinterpret_cast<std::uintptr_t>(addr);
  options.capacity_bytes = size_bytes;
  return options;
}

}  // namespace

void Privateer::Impl::start(int action, const std::string& base_path,
                            const std::string& stash_path) {
  if (action != CREATE && action != OPEN) {
    fail(Errc::invalid_argument,
         "{}: the action is {}, neither Privateer::CREATE nor Privateer::OPEN", base_path, action);
  }
  auto split = privateer::split_stash(base_path);
  if (split.base.empty()) fail(Errc::invalid_argument, "the base path is empty");
  base = absolute(split.base);
  stash = stash_path.empty() ? split.stash : stash_path;
  if (!stash.empty()) stash = absolute(stash);
  if (action == CREATE) {
    block_bytes = privateer::block_bytes_at_start();  // reports a malformed variable at once
    privateer::make_directory(base);
  } else if (!privateer::is_directory(base)) {
    fail(Errc::not_found, "{}: there is no such directory to open versions in", base);
  }
  if (!stash.empty()) privateer::make_directory(stash);
}

void Privateer::Impl::start_beside(const std::string& blocks_path) {
  if (blocks_path.empty()) fail(Errc::invalid_argument, "the blocks path is empty");
  blocks = absolute(blocks_path);
}

void Privateer::Impl::start_at_version(const std::string& directory) {
  start_beside(privateer::place_of_directory(absolute(directory)).store);
}

privateer::VersionPlace Privateer::Impl::place_of(const std::string& version) const {
  return blocks.empty() ? privateer::place_in_base(base, version)
                        : privateer::place_beside_blocks(blocks, absolute(version));
}

Store& Privateer::Impl::store_of(const privateer::VersionPlace& at) {
  if (!store) store = privateer::open_blocks(at);
  return *store;
}

void Privateer::Impl::require_open(const char* call) const {
  if (!region.valid()) {
    fail(Errc::invalid_argument, "{}: no version of {} is open in this object", call,
         (base.empty() ? blocks : base));
  }
}

// Call before another version is opened. A version open to read stays mapped, unless it overlaps.
void Privateer::Impl::put_away(void* addr, std::uint64_t size_bytes) {
  if (region.valid() && region.writable()) {
    close();
  } else if (region.valid()) {
    read_before.push_back(std::move(region));
  }
  region = Region();
  const auto start = reinterpret_cast<std::uintptr_t>(addr);
  if (addr == nullptr) return;
  for (auto& each : read_before) {
    const auto its_start = reinterpret_cast<std::uintptr_t>(each.data());
    if (its_start < start + size_bytes && start < its_start + each.capacity_bytes()) each.close();
  }
  std::erase_if(read_before, [](const Region& each) { return !each.valid(); });
}

void Privateer::Impl::close() {
  if (!region.valid()) return;
  if (region.writable()) {
    region.commit();
    privateer::update_link(*store, place, block_bytes);
  }
  region.close();
}

void* Privateer::Impl::use(Region&& opened, privateer::VersionPlace&& at,
                           std::uint64_t its_block_bytes) {
  assert(opened.valid() && !region.valid() && its_block_bytes != 0);
  region = std::move(opened);
  place = std::move(at);
  block_bytes = its_block_bytes;
  return region.data();
}

void* Privateer::Impl::create(void* addr, const std::string& version, std::uint64_t size_bytes,
                              bool overwrite) {
  auto at = place_of(version);
  const std::uint64_t its_block_bytes = privateer::block_bytes_for(size_bytes);
  const std::uint64_t whole = privateer::whole_blocks(size_bytes, its_block_bytes);
  const auto options = mapping(addr, whole, its_block_bytes, stash);
  if (!store) {
    privateer::make_directory(vellum::base::parent_of(at.store));
    store = privateer::open_or_create_blocks(at.store);
  }
  if (!overwrite && privateer::is_taken(*store, at)) {
    fail(Errc::already_exists, "{} exists, and is replaced only on request", at.label());
  }
  put_away(addr, whole);
  privateer::NewVersion made(*store, at, its_block_bytes);
  auto opened = store->create_region(at.name, whole, options);
  made.keep();
  return use(std::move(opened), std::move(at), its_block_bytes);
}

void* Privateer::Impl::open(void* addr, const std::string& version) {
  auto at = place_of(version);
  auto found = privateer::require_version(store_of(at), at);
  std::uint64_t size_bytes = store->version(found.name).region_bytes;
  put_away(addr, size_bytes);  // this may have been the same version, and may have grown
  found = privateer::require_version(*store, at);
  size_bytes = store->version(found.name).region_bytes;
  const auto options = mapping(addr, size_bytes, found.block_bytes, stash);
  privateer::convert_to_branch(*store, at, found);
  privateer::keep_copies(*store, at);
  auto opened = store->open_region(at.name, options);
  return use(std::move(opened), std::move(at), found.block_bytes);
}

void* Privateer::Impl::open_read_only(void* addr, const std::string& version) {
  auto at = place_of(version);
  auto found = privateer::require_version(store_of(at), at);
  put_away(addr, store->version(found.name).region_bytes);
  found = privateer::require_version(*store, at);
  const auto info = store->version(found.name);
  auto opened =
      store->open_version(found.name, mapping(addr, info.region_bytes, found.block_bytes, stash));
  if (found.is_copy && opened.sequence() != info.sequence) {
    fail(Errc::busy, "{} is a copy of version '{}', which is being written", at.label(),
         found.name);
  }
  return use(std::move(opened), std::move(at), found.block_bytes);
}

void* Privateer::Impl::open_immutable(void* addr, const std::string& version,
                                      const std::string& new_version) {
  const auto from = place_of(version);
  auto at = place_of(new_version);
  auto found = privateer::require_version(store_of(from), from);
  if (privateer::is_taken(*store, at)) {
    fail(Errc::already_exists, "{} exists: cannot open '{}' as it", at.label(), version);
  }
  put_away(addr, store->version(found.name).region_bytes);
  found = privateer::require_version(*store, from);
  privateer::NewVersion made(*store, at, found.block_bytes);
  store->create_branch(at.name, found.name);
  Region opened;
  try {
    const std::uint64_t size_bytes = store->version(at.name).region_bytes;
    opened = store->open_region(at.name, mapping(addr, size_bytes, found.block_bytes, stash));
  } catch (...) {
    store->remove_branch(at.name);
    throw;
  }
  made.keep();
  return use(std::move(opened), std::move(at), found.block_bytes);
}

bool Privateer::Impl::snapshot(const std::string& version) {
  require_open("snapshot");
  const auto at = place_of(version);
  if (privateer::is_taken(*store, at)) return false;
  privateer::NewVersion made(*store, at, block_bytes);
  if (region.writable()) {
    region.snapshot(at.name);
    privateer::update_link(*store, place, block_bytes);  // for programs that copy its files now
  } else {
    // Keeps the state that is open here, not a later one.
    const auto open_sequence = region.sequence();
    store->create_snapshot(at.name, region.name());
    if (store->version(at.name).sequence != open_sequence) {
      store->remove_snapshot(at.name);
      fail(Errc::busy,
           "{} has been written since it was opened to read: '{}' would not be what this object "
           "shows",
           place.label(), version);
    }
  }
  made.keep();
  privateer::update_link(*store, at, block_bytes);
  return true;
}
