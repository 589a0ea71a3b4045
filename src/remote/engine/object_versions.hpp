// remote/engine/object_versions.hpp: places that keep the versions of objects.
//
// There, an object that is replaced or deleted stays as an older version, until this version itself
// is removed. A deletion is a version, too, without content. A version may be locked until a time:
// before it, nobody can remove the version, whatever credentials they have.
//
// Times are those of the place's clock. The order of the versions of a key is the place's, too.
//
// Errors are those of remote/engine/object_store.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "remote/engine/object_store.hpp"

namespace vellum::remote {

using ServerTime = std::chrono::system_clock::time_point;

// Of a version. REQUIRES: nothing; the place chooses them.
struct VersionName {
  std::string key, id;
  auto operator<=>(const VersionName&) const = default;
};

struct ObjectVersion {
  VersionName name;
  std::uint64_t size_bytes = 0;  // of a deletion: 0
  ServerTime put_at;
  bool is_newest = false;    // of its key
  bool is_deletion = false;  // the key had no object from then on
};

// Versions of one key. Within one reply, some servers list deletions behind all versions: the time
// then tells their place, and on equal times which of them is the newest.
void sort_newest_first(std::vector<ObjectVersion>& versions);
// Sorts them and leaves some thousands: the newest, the oldest, and the newest at the time.
void leave_out_middle(std::vector<ObjectVersion>& versions, std::optional<ServerTime> time);

// The lock that objects get when they are put.
struct PutLock {
  std::chrono::seconds duration{0};   // 0: none
  std::vector<std::string> unlocked;  // prefixes of keys whose objects get none
};

// What visit_versions() lists.
struct VersionListing {
  std::string prefix;  // of the keys
  std::string after;   // only keys behind it; empty: all
  // Of a key with thousands of versions, some in the middle may be left out, but not the newest, the
  // oldest, and the newest at this time.
  std::optional<ServerTime> time;
};

// A lock with less than this left is extended. Five eighths of its duration: between two passes, a
// sixteenth apart, none falls below half.
constexpr std::chrono::seconds least_of_lock(std::chrono::seconds duration) {
  return duration * 5 / 8;
}

class ObjectVersions {
 public:
  virtual ~ObjectVersions() = default;
  ObjectVersions() = default;
  ObjectVersions(const ObjectVersions&) = delete;
  ObjectVersions& operator=(const ObjectVersions&) = delete;

  // Errc::unsupported: replaced objects are lost there. One that forbids the question is believed.
  virtual void require_versions() = 0;
  // Errc::unsupported: objects cannot be locked there.
  virtual void require_lock() = 0;

  // Calls `visit` with the versions of each key, until it returns false. Keys ascend; the versions
  // of a key are from the newest to the oldest.
  using VisitKeyFn = std::function<bool(const std::vector<ObjectVersion>& versions)>;
  virtual void visit_versions(const VersionListing& what, const VisitKeyFn& visit) = 0;
  // Removes the versions for good, in any order. Returns those that stay: they are locked, or these
  // credentials may not remove them.
  virtual std::vector<VersionName> remove_versions(std::span<const VersionName> versions) = 0;

  // Locks all objects that are put from now on. Durable with the object.
  virtual void lock_puts(const PutLock& lock) = 0;
  // The duration of these locks; 0: none.
  virtual std::chrono::seconds put_lock() const = 0;
  // The time until which the version is locked against everybody; nullopt: it is not.
  virtual std::optional<ServerTime> locked_until(const VersionName& version) = 0;
  // Locks it for longer. A shorter time is an error.
  virtual void lock_until(const VersionName& version, ServerTime time) = 0;
  // As ObjectStore::get() of the object when this was its version.
  virtual std::vector<std::byte> get_version(const VersionName& version,
                                             std::uint64_t limit_bytes) = 0;
  // The present time there, as far as it is known.
  virtual ServerTime now() const = 0;
};

// A place whose versions can be read.
class VersionedObjects : public ObjectStore, public ObjectVersions {
 public:
  ObjectVersions* versions() noexcept override { return this; }
  // As get_range() and get_start() of the object when this was its version.
  virtual std::vector<std::byte> get_version_range(const VersionName& version,
                                                   ObjectRange range) = 0;
  virtual std::vector<std::byte> get_version_start(const VersionName& version,
                                                   std::uint64_t most_bytes) = 0;
};

}  // namespace vellum::remote
