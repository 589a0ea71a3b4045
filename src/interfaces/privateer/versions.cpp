// interfaces/privateer/versions.cpp: which version a directory holds, and how versions are created.
#include "interfaces/privateer/versions.hpp"

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>
#include <vellum/error.hpp>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/files/new_file.hpp"
#include "interfaces/privateer/settings.hpp"

namespace vellum::privateer {
namespace {

using namespace std::chrono_literals;

constexpr int kTries = 10;  // a fifth of a second: another process is doing the same
constexpr auto kPause = 20ms;

bool has_state(const Store& store, const std::string& name, const Link& link) {
  if (link.sequence == 0 || !store.contains(name)) return false;
  const auto info = store.version(name);
  return info.sequence == link.sequence && base::nanoseconds_of(info.committed_at) == link.time_ns;
}

void remove_from(Store& store, const std::string& name) {
  if (!store.contains(name)) return;
  if (store.version(name).is_branch) {
    store.remove_branch(name);
  } else {
    store.remove_snapshot(name);
  }
}

// Relative if the base may move together with its content.
std::string store_as_seen_from(const VersionPlace& place) {
  const std::filesystem::path store(place.store);
  if (!place.in_base) return std::filesystem::absolute(store).lexically_normal();
  return store.lexically_relative(place.directory);
}

}  // namespace

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool make_directory(const std::string& directory) {
  const std::string parent = base::parent_of(directory);
  const bool missing = !is_directory(directory);
  if (missing) {
    if (!is_directory(parent)) make_directory(parent);
    try {
      base::posix_fs().make_directory(directory);
    } catch (const Error& error) {
      if (error.code() != Errc::already_exists || !is_directory(directory)) throw;
    }
  }
  base::posix_fs().sync_directory(parent);
  return missing;
}

Store open_or_create_blocks(const std::string& path) {
  for (int tries = 1;; ++tries) {
    try {
      return Store::open_or_create(path);
    } catch (const Error& error) {
      const bool in_the_making =
          error.code() == Errc::already_exists || error.code() == Errc::not_a_store;
      if (!in_the_making) throw;
      if (tries == kTries) {
        fail(error.code(), "{} (blocks that the original Privateer wrote are not read)",
             error.what());
      }
    }
    std::this_thread::sleep_for(kPause);
  }
}

Store open_blocks(const VersionPlace& place) {
  if (!is_directory(place.directory)) {
    fail(Errc::not_found, "{}: there is no such directory", place.label());
  }
  try {
    return Store::open(place.store);
  } catch (const Error& error) {
    fail(error.code(), "{}: {}", place.label(), error.what());
  }
}

std::optional<FoundVersion> find_version(const Store& store, const VersionPlace& place) {
  if (!is_directory(place.directory)) return std::nullopt;
  const auto link = read_link(place.directory);
  const std::uint64_t block_bytes = link ? link->block_bytes : kDefaultBlockBytes;
  // Without a link: a directory created by hand, for a name that the store has.
  if (!link || link->name == place.name) {
    if (!store.contains(place.name)) return std::nullopt;
    return FoundVersion{place.name, false, block_bytes};
  }
  if (has_state(store, place.name, *link)) return FoundVersion{place.name, false, block_bytes};
  if (has_state(store, link->name, *link)) return FoundVersion{link->name, true, block_bytes};
  fail(Errc::not_found,
       "{} has the files of version '{}', of its commit {}, which {} does not have under that name "
       "any more",
       place.label(), link->name, link->sequence, store.path());
}

FoundVersion require_version(const Store& store, const VersionPlace& place) {
  auto found = find_version(store, place);
  if (!found) fail(Errc::not_found, "{} is not a version of {}", place.label(), store.path());
  return *found;
}

bool is_taken(const Store& store, const VersionPlace& place) {
  if (!is_directory(place.directory) || !read_link(place.directory)) return false;
  try {
    return find_version(store, place).has_value();
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
    return false;
  }
}

NewVersion::NewVersion(Store& store, const VersionPlace& place, std::uint64_t block_bytes)
    : directory_(place.directory) {
  // Removes the leftover first: the link would make it a version again.
  keep_copies(store, place);
  remove_from(store, place.name);
  made_directory_ = make_directory(directory_);
  write_link(directory_, {store_as_seen_from(place), place.name, block_bytes, 0, 0});
}

NewVersion::~NewVersion() {
  if (kept_) return;
  remove_link(directory_);
  std::error_code ignored;
  if (made_directory_) std::filesystem::remove(directory_, ignored);
}

void update_link(const Store& store, const VersionPlace& place, std::uint64_t block_bytes) {
  const auto info = store.version(place.name);
  const Link link{store_as_seen_from(place), place.name, block_bytes, info.sequence,
                  base::nanoseconds_of(info.committed_at)};
  if (read_link(place.directory) != link) write_link(place.directory, link);
}

void keep_copies(Store& store, const VersionPlace& place) {
  if (!place.in_base || !store.contains(place.name)) return;
  const std::string base = vellum::base::parent_of(place.directory);
  for (const auto& entry : std::filesystem::directory_iterator(base)) {
    if (!entry.is_directory() || entry.path() == place.directory) continue;
    std::optional<Link> link;
    try {
      link = read_link(entry.path());
    } catch (const Error&) {
      continue;  // not a link
    }
    if (!link || link->name != place.name || !has_state(store, place.name, *link)) continue;
    const VersionPlace copy = place_in_base(base, entry.path().filename());
    if (has_state(store, copy.name, *link)) continue;  // it is a version already
    remove_from(store, copy.name);
    store.create_snapshot(copy.name, place.name);
    update_link(store, copy, link->block_bytes);
  }
}

void convert_to_branch(Store& store, const VersionPlace& place, const FoundVersion& found) {
  if (found.is_copy) {
    remove_from(store, place.name);
    store.create_branch(place.name, found.name);
  } else {
    store.convert_to_branch(place.name);
  }
  const Link link{store_as_seen_from(place), place.name, found.block_bytes, 0, 0};
  const auto now = read_link(place.directory);
  if (!now || now->name != place.name) write_link(place.directory, link);
}

}  // namespace vellum::privateer
