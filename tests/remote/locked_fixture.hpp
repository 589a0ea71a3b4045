// Remotes whose objects are locked, in the test's S3 server.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/expect_error.hpp"
#include "base/utc_time.hpp"
#include "remote/engine/objects_at.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/locks.hpp"
#include "remote/needed.hpp"
#include "remote/remote_fixture.hpp"
#include "remote/replicator.hpp"
#include "remote/s3_history_lib.hpp"
#include "remote/seal/sealed_objects.hpp"
#include "remote/session/remote_lock.hpp"
#include "remote/thief.hpp"

namespace vellum::remote::test {

using namespace std::chrono_literals;
using std::chrono::days;

inline constexpr std::chrono::seconds kLock = days(30);
inline constexpr const char* kObjectPrefix = "pre/fix/";

class LockedRemoteTest : public RemoteTest {
 protected:
  LockedRemoteTest() { lock(kLock); }

  void lock(std::chrono::seconds duration) {
    RemoteFile file = read_remote_file(*store, "origin");
    file.lock = {duration, 0};
    write_remote_file(*store, "origin", file, true);
  }
  std::shared_ptr<ObjectStore> over_s3() { return make_s3_engine(place.server.options()); }
  // The remote as it was, opened.
  UnlockedRemote remote_at(ServerTime time) {
    return unlock_remote(objects_at(make_s3_engine(place.server.options()), time));
  }
  void pass(std::chrono::seconds time) { place.history.ahead_s += time.count(); }
  // Nothing else happens in this second.
  ServerTime moment() {
    pass(10s);
    const ServerTime out = place.history.now();
    pass(10s);
    return out;
  }
  std::shared_ptr<StoreDirectory> clone_at(const std::string& name, ServerTime time) {
    clone(base::posix_fs(), "s3://bucket/pre/fix?at=" + base_text(time), dir.path(name), {},
          nullptr, objects_at(make_s3_engine(place.server.options()), time));
    return StoreDirectory::open(base::posix_fs(), dir.path(name));
  }
  static std::string base_text(ServerTime time) { return base::utc_nanoseconds(time); }

  RemoteGcReport collect(bool dry_run = false) {
    const UnlockedRemote unlocked = unlock_remote(over_s3());
    return collect_remote(Remote(*unlocked.objects, unlocked.seal), dry_run, nullptr);
  }
  // Objects that are there now and are locked for less than this.
  std::set<std::string> locked_less_than(std::chrono::seconds time) const {
    std::set<std::string> out;
    for (const auto& [key, versions] : place.history.all()) {
      const auto& newest = versions.back();
      if (newest.is_deletion || newest.locked_until >= place.history.now() + time) continue;
      const std::string name = key.substr(std::string(kObjectPrefix).size());
      if (!name.starts_with("newest/") && !name.starts_with("probe/")) out.insert(name);
    }
    return out;
  }
  // The keys in the bucket of what the versions of the remote need.
  std::set<std::string> needed_keys_there() {
    const UnlockedRemote unlocked = unlock_remote(over_s3());
    const ObjectsKey* const key = unlocked.objects->objects_key();
    std::set<std::string> out;
    const NeededByHead needed = needed_by_newest(Remote(*unlocked.objects, unlocked.seal));
    for (const auto& [plain, size_bytes] : needed.keys) {
      out.insert(key == nullptr ? plain : sealed_key(*key->keys, plain));
    }
    return out;
  }
  std::set<std::string> needed_and_locked_less_than(std::chrono::seconds time) {
    std::set<std::string> out;
    const std::set<std::string> less = locked_less_than(time), needed = needed_keys_there();
    std::ranges::set_intersection(less, needed, std::inserter(out, out.end()));
    return out;
  }
  std::size_t versions_there() const {
    std::size_t out = 0;
    for (const auto& [key, versions] : place.history.all()) out += versions.size();
    return out;
  }
  // Counts requests about retention.
  struct Asked {
    std::atomic<int> got{0}, put{0}, listed{0};
  };
  void count(Asked& asked) {
    place.server.fault = [&asked](const S3Request& request) {
      if (request.query.contains("retention")) ++(request.method == "PUT" ? asked.put : asked.got);
      if (request.query.contains("versions")) ++asked.listed;
      return Fault::none;
    };
  }

  VersionedServer place;
};

}  // namespace vellum::remote::test
